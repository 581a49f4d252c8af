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
from typing import Literal

import psutil

from compilescope.errors import ToolError
from compilescope.process_streams import CHUNK, Stream, TailStream, streams
from compilescope.process_table import descendants, proportional_bytes, resident_bytes

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
    heard: Callable[[bytes], None] | None = None,
    stopping: Stopping | None = None,
) -> Ended:
    """Run a command to its end, or to one of its limits, with all that it started.

    Its output goes to files in `folder`; with `tail_bytes` only the end of it is kept, in memory.
    `heard` gets all of it as it comes, stdout and stderr in one, of which a tail is kept too.
    """
    (folder / "stdin").write_bytes(stdin)
    kills = kernel_kills()
    begun = time.monotonic()
    with streams(folder, tail_bytes, heard) as (source, stdout, stderr):
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
            met = _wait(process, (stdout, stderr), limit_s, memory_bytes, stopping)
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


class Stopping:
    """Ends a program from outside: like Ctrl-C, so that it keeps what it has; then harder, each
    time that its grace has passed. Signal handlers may call it."""

    def __init__(self, grace_s: float, limit_s: float | None = None) -> None:
        self._grace_s = grace_s
        self._until = None if limit_s is None else time.monotonic() + limit_s
        """When to take the next step; None: when somebody asks."""
        self._steps = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
        self._woken, self._waking = os.pipe()
        for end in (self._woken, self._waking):
            os.set_blocking(end, False)
        self.by: Literal["", "time", "order"] = ""
        """Who stopped it: its time limit, or an order; empty: nobody."""

    def ask(self) -> None:
        """Another order leaves a stop that has begun as it is."""
        if not self.by:
            self._order()

    def kill(self) -> None:
        """Without any grace."""
        self._steps = [signal.SIGKILL]
        self._order()

    def fileno(self) -> int:
        return self._woken

    @property
    def wait_s(self) -> float | None:
        """Until `act` has something to do; None: nothing is due by itself."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def act(self, pid: int) -> None:
        """Take the step that is due, if any, against the program and all that it started."""
        with contextlib.suppress(OSError):
            os.read(self._woken, CHUNK)
        if self._until is None or time.monotonic() < self._until:
            return
        self.by = self.by or "time"
        step = self._steps.pop(0)
        self._until = time.monotonic() + self._grace_s if self._steps else None
        if step == signal.SIGKILL:
            end_session(pid, running=True)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, step)

    def close(self) -> None:
        os.close(self._woken)
        os.close(self._waking)

    def _order(self) -> None:
        self.by = self.by or "order"
        self._until = time.monotonic()
        with contextlib.suppress(OSError):
            os.write(self._waking, b"!")


def _wait(
    process: subprocess.Popen[bytes],
    streams: Sequence[Stream],
    limit_s: float | None,
    memory_bytes: int | None,
    stopping: Stopping | None,
) -> str:
    """Until it ends, or meets a limit: `time` or `memory`."""
    until = None if limit_s is None else time.monotonic() + limit_s
    meter = None if memory_bytes is None else _Meter(process.pid, memory_bytes)
    with selectors.DefaultSelector() as selector, _end_of(process.pid) as ending:
        if ending is not None:
            selector.register(ending, selectors.EVENT_READ)
        if stopping is not None:
            selector.register(stopping, selectors.EVENT_READ)
        for stream in streams:
            if isinstance(stream, TailStream):
                selector.register(stream.pipe, selectors.EVENT_READ, stream)
        while process.poll() is None:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return "time"
            if meter is not None and meter.exceeded():
                return "memory"
            waits = [left, None if meter is None else meter.wait_s, None if ending else _LOOK_S]
            if stopping is not None:
                stopping.act(process.pid)
                waits.append(stopping.wait_s)
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
    return _EXHAUSTED.search(stderr[-CHUNK:].decode(errors="replace")) is not None


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
    text = stderr[-CHUNK:].decode(errors="replace")
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
