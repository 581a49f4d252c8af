"""One process of the program with all that it starts: within its limits, never left alone."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from compilescope.errors import ToolError
from compilescope.process_table import descendants, proportional_bytes, resident_bytes

_CHUNK = 1 << 16
_DRAIN_S = 1.0
_LOOK_S = 0.05
"""Between two looks at a process where the system has no other way to wait for its end."""
_SHARE = 0.02
"""The most that looking at its memory may take of a core."""
_LONGEST_PACE_S = 1.0
_BACKSTOP = 4 << 30
_MOST_REASON = 300
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
class Ended:
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


def run_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    stdin: bytes = b"",
    limit_s: float | None = 300.0,
    memory_bytes: int | None = None,
    tail_bytes: int | None = None,
    cwd: Path | None = None,
    started: Callable[[int], None] | None = None,
) -> Ended:
    """Run a command to its end, or to one of its limits, with all that it started.

    Its output goes to files in `folder`; with `tail_bytes` only the end of it is kept, in memory.
    """
    (folder / "stdin").write_bytes(stdin)
    kills = kernel_kills()
    begun = time.monotonic()
    with _streams(folder, tail_bytes) as (source, stdout, stderr):
        try:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=source,
                stdout=stdout.given,
                stderr=stderr.given,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"Cannot start {command[0]}: {error.strerror}.") from None
        met = ""
        try:
            stdout.opened()
            stderr.opened()
            if memory_bytes is not None:
                _set_backstop(process.pid, memory_bytes)
            if started is not None:
                started(process.pid)
            met = _wait(process, (stdout, stderr), limit_s, memory_bytes)
        finally:
            # Also at Ctrl-C, and for children that outlive the program.
            _end(process)
        seconds = time.monotonic() - begun
        out, err = stdout.read_all(), stderr.read_all()
    exhausted = met == "memory" or _ran_out(process.returncode, met, err, kills)
    reason = _reason(process.returncode, met, err, limit_s, memory_bytes, exhausted)
    dropped = stdout.dropped + stderr.dropped
    status = process.returncode
    return Ended(status, met == "time", out, err, seconds, exhausted, reason, dropped)


class _FileStream:
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


class _TailStream:
    """The end of an output that may be endless, so that it fills neither disk nor memory."""

    def __init__(self, most: int) -> None:
        self._most = most
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
            chunk = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return None
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


_Stream = _FileStream | _TailStream


@contextlib.contextmanager
def _streams(folder: Path, tail: int | None) -> Iterator[tuple[IO[bytes], _Stream, _Stream]]:
    with contextlib.ExitStack() as stack:
        source = stack.enter_context((folder / "stdin").open("rb"))
        outputs: list[_Stream] = []
        for name in ("stdout", "stderr"):
            outputs.append(_FileStream(folder / name) if tail is None else _TailStream(tail))
            stack.callback(outputs[-1].close)
        yield source, outputs[0], outputs[1]


def _wait(
    process: subprocess.Popen[bytes],
    streams: Sequence[_Stream],
    limit_s: float | None,
    memory_bytes: int | None,
) -> str:
    """Until it ends, or meets a limit: `time` or `memory`."""
    until = None if limit_s is None else time.monotonic() + limit_s
    meter = None if memory_bytes is None else _Meter(process.pid, memory_bytes)
    with selectors.DefaultSelector() as selector, _end_of(process.pid) as ending:
        if ending is not None:
            selector.register(ending, selectors.EVENT_READ)
        for stream in streams:
            if isinstance(stream, _TailStream):
                selector.register(stream.pipe, selectors.EVENT_READ, stream)
        while process.poll() is None:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return "time"
            if meter is not None and meter.exceeded():
                return "memory"
            waits = [left, None if meter is None else meter.wait_s, None if ending else _LOOK_S]
            known = [wait for wait in waits if wait is not None]
            for key, _ in selector.select(min(known, default=None)):
                if key.data is not None and key.data.read() == 0:
                    selector.unregister(key.fileobj)
    return ""


@contextlib.contextmanager
def _end_of(pid: int) -> Iterator[int | None]:
    """Something to select on that is ready when the process has ended, where there is such."""
    opened = None
    with contextlib.suppress(OSError, AttributeError):
        opened = os.pidfd_open(pid)
    try:
        yield opened
    finally:
        if opened is not None:
            os.close(opened)


class _Meter:
    """The memory of a process and its descendants, looked at only as often as that is cheap."""

    def __init__(self, pid: int, limit: int) -> None:
        self._pid = pid
        self._limit = limit
        self._next = 0.0

    @property
    def wait_s(self) -> float:
        return max(0.0, self._next - time.monotonic())

    def exceeded(self) -> bool:
        begun = time.monotonic()
        if begun < self._next:
            return False
        beyond = self._is_beyond()
        took = time.monotonic() - begun
        pace = min(_LONGEST_PACE_S, max(_LOOK_S, took / _SHARE))
        self._next = begun + took + pace
        return beyond

    def _is_beyond(self) -> bool:
        """Resident sizes count shared pages once for each process: an upper bound, cheap to read.
        Only beyond it are the proportional sizes, which take long, worth reading."""
        pids = [self._pid, *descendants(self._pid)]
        if sum(map(resident_bytes, pids)) <= self._limit:
            return False
        return sum(map(proportional_bytes, pids)) > self._limit


def _set_backstop(pid: int, memory_bytes: int) -> None:
    """For what is faster than our looks: the kernel refuses each process far more data than the
    limit (not address space: torch 2.11 maps 18 GB with CUDA, of which 1.7 GB are data), and when
    the machine runs out of memory all the same it ends the program first."""
    most = max(2 * memory_bytes, memory_bytes + _BACKSTOP)
    with contextlib.suppress(psutil.Error, OSError, ValueError, AttributeError):
        psutil.Process(pid).rlimit(psutil.RLIMIT_DATA, (most, most))
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def kernel_kills() -> int | None:
    """How many processes the kernel has ended for want of memory since it started."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None


def _ran_out(status: int, met: str, stderr: bytes, kills: int | None) -> bool:
    if met or status == 0:
        return False
    if status == -signal.SIGKILL:
        # Not ours. Where the kernel does not count, it is the likeliest to have sent it.
        return kills is None or kernel_kills() != kills
    return _EXHAUSTED.search(stderr[-_CHUNK:].decode(errors="replace")) is not None


def _reason(
    status: int,
    met: str,
    stderr: bytes,
    limit_s: float | None,
    memory_bytes: int | None,
    exhausted: bool,
) -> str:
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
    said = _said(status, stderr)
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


def _said(status: int, stderr: bytes) -> str:
    """What it raised, if it is Python; advice may follow that, as torch's does. Else its last
    line."""
    text = stderr[-_CHUNK:].decode(errors="replace")
    frames = text.rpartition(_TRACEBACK)[2] if status == 1 and _TRACEBACK in text else ""
    raised = (line for line in frames.splitlines()[1:] if line[:1].strip())
    last = (line for line in reversed(text.splitlines()) if line.strip())
    said = next(raised, next(last, "")).strip()
    return said if len(said) <= _MOST_REASON else said[: _MOST_REASON - 1] + "…"


def _end(process: subprocess.Popen[bytes]) -> None:
    end_session(process.pid, running=process.poll() is None)
    process.wait()


def end_session(pid: int, *, running: bool) -> None:
    """Kill what is left of a session: its group, and children that made groups of their own."""
    others = descendants(pid) if running else []
    # The first one last: whoever kills us meanwhile finds what is left by it.
    for each in (*reversed(others), pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(each, signal.SIGKILL)
        if each != pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
