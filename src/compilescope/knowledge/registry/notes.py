"""What people add to graph breaks: `notes/gbNNNN.md`, one file an id, in markdown.

Some come with this version; a user's own are in a folder of theirs, and stand above those. The
files belong to their authors: nothing generates one. They are written here alone, for who
edits one in the dashboard and for an import, and never over a text that its writer has not seen.
"""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from compilescope.base.bundles import Bundled, BundlePath, bundled
from compilescope.base.errors import ToolError
from compilescope.base.settings import config_folder
from compilescope.knowledge.registry.table import normal_id

NOTES = Path(__file__).with_name("notes")
BIGGEST_BYTES = 256 * 1024
"""Of a note. Chosen: far more than people write into one."""
_SAVING = threading.Lock()


class Note(msgspec.Struct, frozen=True):
    """The additional information on one id."""

    gb_id: str
    text: str
    path: Bundled


class NoteChanged(ToolError):
    """Somebody else saved the note in the meantime."""

    def __init__(self, now: str) -> None:
        super().__init__("The note changed while you were editing it; yours is not saved yet.")
        self.now = now
        """What it says now."""


def default_notes() -> Path:
    """The folder of the user's own notes."""
    return config_folder() / "notes"


def note_name(gb_id: str) -> str:
    return f"{gb_id.lower()}.md"


def read_notes(folder: Path | None = None) -> dict[str, Note]:
    """The notes in a folder (those that come with this version) that say something, by id."""
    if folder is not None and not folder.is_dir():
        raise ToolError(f"There is no folder {folder}.")
    notes = {}
    for path in _files(folder):
        gb_id = id_of(path)
        if gb_id is not None and path.name.endswith(".md"):
            text = _read(path)
            if text.strip():
                notes[gb_id] = Note(gb_id, text, path)
    return notes


def _files(folder: Path | None) -> list[Bundled]:
    place = folder if folder is not None else bundled(NOTES)
    return sorted(place.iterdir(), key=str)


def id_of(path: Bundled) -> str | None:
    """The id that a file is named after: gb0124.md belongs to GB0124, README.md to none."""
    return normal_id(path.stem) if path.stem[:2].lower() == "gb" else None


def own_notes(folder: Path) -> dict[str, Note]:
    """The user's own notes by id; one that cannot be read is left out, and told on its page."""
    found = {}
    for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
        gb_id = id_of(path)
        if gb_id is None or path.name != note_name(gb_id):
            continue
        with suppress(ToolError):
            text = own_note(folder, gb_id)
            if text.strip():
                found[gb_id] = Note(gb_id, text, path)
    return found


def own_note(folder: Path, gb_id: str) -> str:
    """The user's own note on an id as it stands in the folder; empty where there is none."""
    path = _place(folder, gb_id)
    return _read(path) if path.exists() else ""


def stamp_of(text: str) -> str:
    """What tells two versions of a note apart."""
    return hashlib.sha256(text.encode()).hexdigest()


def save_note(folder: Path, gb_id: str, text: str, loaded: str) -> None:
    """Write the user's own note; an empty text removes it. `loaded`: the stamp of the text that the
    writer began with. Raises `NoteChanged` where the note is another by now."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.rstrip() + "\n" if text.strip() else ""
    data = encoded(text)
    with _SAVING:
        path = _place(folder, gb_id)
        now = own_note(folder, gb_id)
        if now == text:
            return
        if stamp_of(now) != loaded:
            raise NoteChanged(now)
        try:
            if text:
                write_note(path, data)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
            raise ToolError(f"The note {path} could not be saved: {why}.") from None


def encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolError("The note is not UTF-8 text.") from None
    if b"\0" in data:
        raise ToolError("The note is not text: it contains a null byte.")
    if len(data) > BIGGEST_BYTES:
        raise ToolError(f"A note may have at most {BIGGEST_BYTES // 1024} KB.")
    return data


def write_note(path: Path, data: bytes) -> None:
    """In one step: a reader never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _place(folder: Path, gb_id: str) -> Path:
    """Where the user's own note is. A link would lead a writer elsewhere, and what comes with this
    version is not the user's."""
    known = normal_id(gb_id)
    if known is None:
        raise ToolError(f"{gb_id[:40]!r} is not the ID of a graph break.")
    path = folder / note_name(known)
    if folder.is_symlink() or path.is_symlink():
        raise ToolError(f"{path} is a link, so it is not used as a note.")
    if path.exists() and not path.is_file():
        raise ToolError(f"{path} is not a file.")
    if NOTES.parent.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise ToolError(
            f"{folder} belongs to compilescope itself.", hint="Choose a folder of your own."
        )
    return path


def _read(path: Bundled) -> str:
    if isinstance(path, BundlePath):
        return path.read_text()
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
