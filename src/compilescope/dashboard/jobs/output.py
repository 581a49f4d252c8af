"""What a job prints, on disk: its beginning and its end, however much comes between.

The beginning is in `output.log`. What comes later is in files that are named by where they begin,
of which the oldest are removed. A place in the output is always counted from its first byte.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HEAD = "output.log"
_LATER = "output-*.log"
_PIECES = 4
"""Files of the end that are kept whole, beside the one that is being written. Chosen: when the
oldest is removed, only a fifth of the end goes with it."""
_MOST_ESCAPE = 64
"""Bytes that a colour may take. Chosen: a bound; colours take far fewer."""
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\"
    r"|[ -/]*[0-OQ-WYZ\\`-~])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class OutputLog:
    """Written by the keeper. A disk that is full costs output, never the job."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._head_bytes = most_bytes // 2
        self._piece_bytes = max(1, most_bytes // 2 // (_PIECES + 1))
        self._file: IO[bytes] = (folder / HEAD).open("wb", buffering=0)
        self._room = self._head_bytes
        self._pieces: list[Path] = []
        self._end = 0
        self.dropped = 0
        """Bytes that are in no file any more."""

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            if not self._room:
                self._turn()
            part, rest = rest[: self._room], rest[self._room :]
            try:
                written = self._file.write(part)
            except OSError:
                written = 0
            # What could not be written is a gap; the next file begins behind it.
            self._end += len(part)
            self._room -= len(part)
            if written != len(part):
                self.dropped += len(part) - (written or 0)
                self._room = 0

    def close(self) -> None:
        self._file.close()

    def _turn(self) -> None:
        """Begin the next file; remove what is too much."""
        path = self._folder / f"output-{self._end}.log"
        with contextlib.suppress(OSError):
            opened = path.open("wb", buffering=0)
            self._file.close()
            self._file = opened
            self._pieces.append(path)
        self._room = self._piece_bytes
        while len(self._pieces) > _PIECES + 1:
            oldest = self._pieces.pop(0)
            with contextlib.suppress(OSError):
                self.dropped += oldest.stat().st_size
                oldest.unlink()


@dataclass(frozen=True)
class Chunk:
    """A stretch of the output."""

    start: int
    data: bytes
    skipped: int = 0
    """Bytes before it that were asked for and are not there."""

    @property
    def end(self) -> int:
        return self.start + len(self.data)


def read_output(folder: Path, start: int, most: int) -> Chunk:
    """What was printed from `start` on, as far as one file holds it; empty at the end."""
    for begins, path in _files(folder):
        try:
            size = path.stat().st_size
            if begins + size <= start:
                continue
            at = max(start, begins)
            with path.open("rb") as file:
                file.seek(at - begins)
                return Chunk(at, file.read(most), at - start)
        except OSError:
            continue  # Removed meanwhile: the next one is what is left.
    return Chunk(start, b"")


def output_end(folder: Path) -> int:
    """How many bytes were printed so far."""
    end = 0
    for begins, path in _files(folder):
        with contextlib.suppress(OSError):
            end = max(end, begins + path.stat().st_size)
    return end


def whole_output(folder: Path) -> Iterator[bytes]:
    """All that is kept now; a line says where something is missing."""
    at, end = 0, output_end(folder)
    # Not further: a program that prints without end would never let go of the reader.
    while at < end and (chunk := read_output(folder, at, 1 << 18)).data:
        if chunk.skipped:
            yield f"\n[{chunk.skipped:,} bytes are not kept]\n".encode()
        yield chunk.data
        at = chunk.end


def _files(folder: Path) -> list[tuple[int, Path]]:
    later = []
    for path in folder.glob(_LATER):
        number = path.stem.partition("-")[2]
        if number.isdigit():
            later.append((int(number), path))
    return [(0, folder / HEAD), *sorted(later)]


def whole_characters(data: bytes) -> int:
    """How many of these bytes can be shown now: neither a character nor an escape is torn apart."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    end = len(data) - len(decoder.getstate()[0])
    escape = data.rfind(b"\x1b", max(0, end - _MOST_ESCAPE), end)
    if escape >= 0 and not _ESCAPE.match(data[escape:end].decode("latin-1")):
        end = escape
    # A line end of two characters stays one.
    return end - 1 if data[end - 1 : end] == b"\r" else end


def plain_text(data: bytes) -> str:
    """Without colors and control characters. A carriage return stays: it begins a line anew."""
    text = data.decode("utf-8", "replace")
    return _CONTROL.sub("", _ESCAPE.sub("", text)).replace("\r\n", "\n")


def settled(text: str) -> str:
    """Lines as a terminal leaves them once progress has been drawn over."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
