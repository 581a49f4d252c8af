"""Where a child's output goes: whole into a file, or through a pipe of which the end is kept."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

CHUNK = 1 << 16
"""The size of a pipe on Linux: one read empties it."""
_DRAIN_S = 1.0
"""For what is left in a pipe at the end. Chosen: it holds a chunk, unless somebody still writes."""


class FileStream:
    """Output in a file, as long as it is: programs see what they see under a shell's `>`."""

    dropped = 0

    def __init__(self, path: Path) -> None:
        self._path = path
        self.given: IO[bytes] | int = path.open("wb")

    def opened(self) -> None:
        """The child has it now."""

    def read_all(self) -> bytes:
        return self._path.read_bytes()

    def close(self) -> None:
        assert not isinstance(self.given, int)
        self.given.close()


class TailStream:
    """The end of an output that may be endless, so that it fills neither disk nor memory."""

    def __init__(self, most: int, heard: Callable[[bytes], None] | None = None) -> None:
        self._most = most
        self._heard = heard
        self._kept = bytearray()
        self.dropped = 0
        self.pipe, self.given = os.pipe()
        os.set_blocking(self.pipe, False)

    def opened(self) -> None:
        """Only the child's copy stays open, so that its end is the end of the pipe."""
        os.close(self.given)
        self.given = -1

    def read(self) -> int | None:
        """Take what is there: 0 bytes at the end, None when there is nothing for now."""
        try:
            chunk = os.read(self.pipe, CHUNK)
        except BlockingIOError:
            return None
        if self._heard is not None and chunk:
            self._heard(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * self._most:
            self._cut()
        return len(chunk)

    def read_all(self) -> bytes:
        """Whoever still writes has left the program's session: no reason to wait for it."""
        until = time.monotonic() + _DRAIN_S
        while self.read() and time.monotonic() < until:
            pass
        self._cut()
        return bytes(self._kept)

    def close(self) -> None:
        for descriptor in (self.pipe, self.given):
            if descriptor >= 0:
                os.close(descriptor)

    def _cut(self) -> None:
        excess = max(0, len(self._kept) - self._most)
        self.dropped += excess
        del self._kept[:excess]


class JoinedStream:
    """An output that goes where another goes."""

    dropped = 0
    given = subprocess.STDOUT

    def __init__(self, other: TailStream) -> None:
        self._other = other

    def opened(self) -> None:
        """Nothing of its own is open."""

    def read_all(self) -> bytes:
        return self._other.read_all()


Stream = FileStream | TailStream | JoinedStream


@contextlib.contextmanager
def streams(
    folder: Path, tail: int | None, heard: Callable[[bytes], None] | None
) -> Iterator[tuple[IO[bytes], Stream, Stream]]:
    with contextlib.ExitStack() as stack:
        source = stack.enter_context((folder / "stdin").open("rb"))
        if heard is not None:
            both = TailStream(tail or CHUNK, heard)
            stack.callback(both.close)
            yield source, both, JoinedStream(both)
            return
        outputs: list[FileStream | TailStream] = []
        for name in ("stdout", "stderr"):
            outputs.append(FileStream(folder / name) if tail is None else TailStream(tail))
            stack.callback(outputs[-1].close)
        yield source, outputs[0], outputs[1]
