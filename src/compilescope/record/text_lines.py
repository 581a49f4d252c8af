"""Short texts as lines of an event file, above the events that name them.

A program that compiles all the time has several short texts a compilation. To make a file for each
takes many times as long as to write the text, and that is time of the user's program; a line goes
out in one write with the event. A file that was cut lacks the texts whose lines are not whole.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from compilescope.record.plain_files import open_plain

LONGEST_TEXT = 1 << 14
"""Bytes of a text that is written as a line. Chosen: a graph of more takes seconds to compile, so
that a file for it is cheap, and whoever reads events passes over the lines of texts."""
_BEGINNING = b'{"artifact":"'
"""Of the line of a text, and of no event's."""
_WORD = b"artifact"
_LONGEST_LINE = 1 << 18
"""Bytes. No text that we write is longer: a control character takes six."""
_LONGEST_NAME = 64
"""Bytes in which the name of a text must end. Chosen: more than any digest that we write."""
_MOST_PLACES = 1_000_000
"""Texts of a run that are found again. Chosen: it bounds memory, to 300 MB, where a stranger's run
is nothing but names."""


class _TextLine(msgspec.Struct, frozen=True):
    artifact: str
    text: str


_decoder = msgspec.json.Decoder(_TextLine)


class _LinePlace(msgspec.Struct, frozen=True):
    """Where a line is."""

    path: Path
    start: int
    length: int


def text_line(artifact: str, text: str) -> bytes:
    """UnicodeEncodeError where JSON has no way to say it."""
    return msgspec.json.encode(_TextLine(artifact, text))


def without_texts(lines: bytes) -> bytes:
    """The other lines."""
    # The word alone is found seven times as fast: quotation marks are everywhere.
    if _WORD not in lines or _BEGINNING not in lines:
        return lines
    return b"\n".join(line for line in lines.split(b"\n") if not line.startswith(_BEGINNING))


class TextLines:
    """Finds texts in event files, which may grow."""

    def __init__(self) -> None:
        self._places: dict[str, _LinePlace] = {}
        self._seen: dict[Path, int] = {}
        """Bytes of each file up to which it is known."""

    def get(self, artifact: str) -> str | None:
        place = self._places.get(artifact)
        if place is None:
            return None
        try:
            with open_plain(place.path) as file:
                file.seek(place.start)
                return _decoder.decode(file.read(place.length)).text
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None  # No text, or the file is another one by now.

    def size(self, artifact: str) -> int:
        place = self._places.get(artifact)
        return place.length if place is not None else 0

    def look_into(self, files: Iterable[Path]) -> None:
        """Take in what is new; a file that cannot be read has nothing."""
        for path in files:
            try:
                self._look_into(path)
            except OSError:
                continue

    def _look_into(self, path: Path) -> None:
        start = self._seen.get(path, 0)
        if path.stat().st_size <= start:
            return
        with open_plain(path) as file:
            file.seek(start)
            while line := file.readline(_LONGEST_LINE):
                ended = line.endswith(b"\n")
                if not ended and len(line) < _LONGEST_LINE:
                    break  # It is still being written, or was cut.
                if ended and line.startswith(_BEGINNING):
                    self._note(line, _LinePlace(path, start, len(line)))
                start += len(line)
        self._seen[path] = start

    def _note(self, line: bytes, place: _LinePlace) -> None:
        end = line.find(b'"', len(_BEGINNING), len(_BEGINNING) + _LONGEST_NAME)
        if end > 0 and len(self._places) < _MOST_PLACES:
            name = line[len(_BEGINNING) : end].decode("ascii", "replace")
            self._places.setdefault(name, place)
