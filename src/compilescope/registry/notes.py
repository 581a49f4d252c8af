"""What people add to graph breaks: `notes/gbNNNN.md`, one file an id, in markdown.

These files belong to their authors. Nothing here or elsewhere writes one but `registry import`, and
that never over one that is there, unless it is told to.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from compilescope.errors import ToolError
from compilescope.registry.table import normal_id

NOTES = Path(__file__).with_name("notes")
BIGGEST_BYTES = 256 * 1024


class Note(msgspec.Struct, frozen=True):
    """The additional information on one id."""

    gb_id: str
    text: str
    path: Path


def note_name(gb_id: str) -> str:
    return f"{gb_id.lower()}.md"


def read_notes(folder: Path | None = None) -> dict[str, Note]:
    """The notes in a folder (those that come with this version) that say something, by id."""
    place = folder if folder is not None else NOTES
    if folder is not None and not folder.is_dir():
        raise ToolError(f"There is no folder {folder}.")
    notes = {}
    for path in sorted(place.glob("*.md")):
        gb_id = id_of(path)
        if gb_id is not None:
            text = _read(path)
            if text.strip():
                notes[gb_id] = Note(gb_id, text, path)
    return notes


def id_of(path: Path) -> str | None:
    """The id that a file is named after: gb0124.md belongs to GB0124, README.md to none."""
    return normal_id(path.stem) if path.stem[:2].lower() == "gb" else None


def misnamed(folder: Path | None = None) -> list[Path]:
    """Files among the notes that no page would show."""
    found = []
    for path in sorted((folder if folder is not None else NOTES).iterdir()):
        gb_id = id_of(path)
        named = gb_id is not None and path.name == note_name(gb_id)
        if not named and path.name not in ("README.md", "__init__.py", "__pycache__"):
            found.append(path)
    return found


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(BIGGEST_BYTES + 1)
        if len(data) > BIGGEST_BYTES:
            limit = BIGGEST_BYTES // 1024
            raise ToolError(f"The note {path} is larger than {limit} KB.")
        return data.decode()
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolError(f"The note {path} could not be read: {why}.") from None
    except UnicodeDecodeError:
        raise ToolError(f"The note {path} is not UTF-8.") from None
