"""How a process ended: its status, the limit it exceeded, and the reason in a sentence;
and what it wrote, as far as that is kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CHUNK = 1 << 16
"""The size of a pipe on Linux: one read empties it."""
_DRAIN_S = 1.0
"""For what is left in a pipe at the end. Chosen: it holds a chunk, unless somebody still writes."""
_MOST_REASON = 300
"""Characters of what it said: chosen, so that a reason stays a line or two of a table."""
_TRACEBACK = "Traceback (most recent call last):"

_EXHAUSTED = re.compile(
    r"^[\w.]*MemoryError\b"
    r"|DefaultCPUAllocator: (?:can't|cannot) allocate memory"
    r"|DefaultCPUAllocator: not enough memory"
    r"|CUDA out of memory"
    r"|HIP out of memory"
    r"|std::bad_alloc",
    re.MULTILINE,
)
"""What Python, torch's allocators and C++ say when there is no memory left (torch 2.11 to 2.15)."""


@dataclass(frozen=True)
class ProcessEnd:
    """How it ended."""

    status: int
    """As subprocess has it: negative for a signal."""
    timed_out: bool
    stdout: bytes
    stderr: bytes
    seconds: float
    out_of_memory: bool = False
    """Stopped at our limit or by the kernel, or it said so itself."""
    reason: str = ""
    """Why it did not end with status 0, in a sentence."""


def kernel_kills() -> int | None:
    """How many processes the kernel has ended for want of memory since it started."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None


def ran_out(status: int, met: str, stderr: bytes, kills: int | None) -> bool:
    """Did it end for want of memory? `kills`: `kernel_kills` before it started."""
    if met or status == 0:
        return False
    if status == -signal.SIGKILL:
        # Not ours. Where the kernel does not count, it is the likeliest to have sent it.
        return kills is None or kernel_kills() != kills
    return _EXHAUSTED.search(stderr[-CHUNK:].decode(errors="replace")) is not None


def reason_of(
    status: int,
    met: str,
    stderr: bytes,
    limit_s: float | None,
    memory_bytes: int | None,
    exhausted: bool,
) -> str:
    """`met`: the limit that it was stopped at, `time` or `memory`; empty: none."""
    if met == "time":
        return f"Stopped at its time limit of {limit_s:g} s."
    if met == "memory":
        assert memory_bytes is not None
        return f"Stopped at its memory limit of {memory_bytes / 1e9:.3g} GB."
    if status == -signal.SIGKILL:
        return "Killed by the system, out of memory." if exhausted else status_words(status)
    if status < 0:
        return status_words(status)
    if status == 0:
        return ""
    said = (
        last_words(stderr) if status == 1 else last_line(stderr[-CHUNK:].decode(errors="replace"))
    )
    words = "Ran out of memory" if exhausted else status_words(status).rstrip(".")
    return f"{words}: {said}" if said else f"{words}."


def status_words(status: int) -> str:
    """A status as subprocess has it, in a sentence."""
    if status >= 0:
        return f"Exited with status {status}."
    try:
        return f"Killed by {signal.Signals(-status).name}."
    except ValueError:
        return f"Killed by signal {-status}."


def last_words(stderr: bytes) -> str:
    """What it raised, if it is Python; advice may follow that, as torch's does, and what its exit
    could not clean up. Else its last line."""
    text = stderr[-CHUNK:].decode(errors="replace")
    said = _raised(text.splitlines()) or last_line(text)
    return said if len(said) <= _MOST_REASON else said[: _MOST_REASON - 1] + "…"


def _raised(lines: list[str]) -> str:
    """The first line of the last error that nobody caught."""
    said = ""
    for number, line in enumerate(lines):
        ignored = number and lines[number - 1].startswith("Exception ignored")
        if line.startswith(_TRACEBACK) and not ignored:
            below = (each for each in lines[number + 1 :] if each[:1].strip())
            said = next(below, "").strip() or said
    return said


def last_line(text: str) -> str:
    """The last one that is not empty; most programs say there why they end."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


# Where a child's output goes: whole into a file, or through a pipe of which the end is kept.


class _FileStream:
    """Output in a file, as long as it is: programs see what they see under a shell's `>`."""

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
        del self._kept[: max(0, len(self._kept) - self._most)]


class _JoinedStream:
    """An output that goes where another goes."""

    given = subprocess.STDOUT

    def __init__(self, other: TailStream) -> None:
        self._other = other

    def opened(self) -> None:
        """Nothing of its own is open."""

    def read_all(self) -> bytes:
        return self._other.read_all()


Stream = _FileStream | TailStream | _JoinedStream


@contextlib.contextmanager
def streams(
    folder: Path, tail: int | None, heard: Callable[[bytes], None] | None, *, apart: bool = False
) -> Iterator[tuple[IO[bytes], Stream, Stream]]:
    with contextlib.ExitStack() as stack:
        source = stack.enter_context((folder / "stdin").open("rb"))
        if heard is not None and apart:
            answer, talk = _FileStream(folder / "stdout"), TailStream(tail or CHUNK, heard)
            stack.callback(answer.close)
            stack.callback(talk.close)
            yield source, answer, talk
            return
        if heard is not None:
            both = TailStream(tail or CHUNK, heard)
            stack.callback(both.close)
            yield source, both, _JoinedStream(both)
            return
        outputs: list[_FileStream | TailStream] = []
        for name in ("stdout", "stderr"):
            outputs.append(_FileStream(folder / name) if tail is None else TailStream(tail))
            stack.callback(outputs[-1].close)
        yield source, outputs[0], outputs[1]
