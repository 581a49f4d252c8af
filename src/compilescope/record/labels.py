"""What people say about a run: tags to find it by, and a note. A small file in the run's folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.outputs import output_file
from compilescope.base.patterns import late
from compilescope.record.plain_files import open_plain

FILE_NAME = "labels.json"
MOST_TAGS = 20
"""Chosen: what fits beside a run in a list."""
LONGEST_TAG = 40
"""Letters. Chosen likewise: a few words."""
LONGEST_NOTE = 2000
"""Letters. Chosen: a paragraph or two."""
_MOST_BYTES = 64 << 10
"""Of the file, which may come with a run that somebody else made. Chosen: several times what the
limits above allow."""
_BETWEEN = late(r"[\s,]+")


class Labels(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tags and the note of one run."""

    tags: tuple[str, ...] = ()
    note: str = ""


def make_labels(tags: Iterable[str], note: str) -> Labels:
    """With each tag once and line ends of one kind; `ToolError` where something is too much."""
    tags = tuple(dict.fromkeys(tags))
    note = note.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(tags) > MOST_TAGS:
        raise ToolError(f"A run can have at most {MOST_TAGS} tags, not {len(tags)}.")
    for tag in tags:
        _check_tag(tag)
    if len(note) > LONGEST_NOTE:
        raise ToolError(f"A note can have at most {LONGEST_NOTE:,} characters, not {len(note):,}.")
    if not all(c.isprintable() or c in "\n\t" for c in note):
        raise ToolError("A note can't contain control characters.")
    return Labels(tags, note)


def split_tags(text: str) -> tuple[str, ...]:
    """As a person types them: commas or spaces between."""
    return tuple(filter(None, _BETWEEN.split(text)))


def _check_tag(tag: str) -> None:
    if not tag or len(tag) > LONGEST_TAG:
        shown = tag if len(tag) <= LONGEST_TAG else f"{tag[:LONGEST_TAG]}…"
        raise ToolError(f"A tag has 1 to {LONGEST_TAG} characters: {shown!r}.")
    if not tag.isprintable() or _BETWEEN.search(tag):
        raise ToolError(f"A tag can't contain spaces, commas or control characters: {tag!r}.")


def read_labels(folder: Path) -> Labels:
    """Of the run in `folder`; none where nobody gave it any."""
    path = folder / FILE_NAME
    try:
        with open_plain(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return Labels()
    except OSError as error:
        raise ToolError(f"Cannot read {path}: {error.strerror}.") from None
    try:
        if len(data) > _MOST_BYTES:
            raise ToolError("It is too large.")
        found = msgspec.json.decode(data, type=Labels)
        return make_labels(found.tags, found.note)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ToolError):
        raise ToolError(
            f"The tags and the note of this run can't be read: {path} is damaged.",
            hint="Delete the file, or save new tags.",
        ) from None


def tags_of(folder: Path) -> tuple[str, ...]:
    """None of a file that is damaged: `compilescope runs tag` says what is wrong with it."""
    try:
        return read_labels(folder).tags
    except ToolError:
        return ()


def write_labels(folder: Path, labels: Labels) -> None:
    """Whole or not at all; without tags and note there is no file."""
    path = folder / FILE_NAME
    try:
        if not labels.tags and not labels.note:
            path.unlink(missing_ok=True)
            return
        with output_file(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(labels), indent=1) + b"\n")
    except OSError as error:
        raise ToolError(f"Cannot write {path}: {error.strerror}.") from None
