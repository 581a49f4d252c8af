"""How a process ended: its status, the limit it exceeded, and the reason in a sentence."""

from __future__ import annotations

import contextlib
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from compilescope.processes.output import CHUNK

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
    dropped_bytes: int = 0
    """Output that was not kept: all but the tail of a long one."""


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
