"""Run a command within limits of time and memory, and end it with all that it started.

`run_process` says how it ended and keeps its output; `run_within` is `subprocess.run` with our
clock; `end_process` is for those who start a process of their own to talk to. Whatever happens,
Ctrl-C too, nothing of its session outlives the call.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import psutil

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import clock
from compilescope.base.processes.outcome import (
    CHUNK,
    ProcessEnd,
    Stream,
    TailStream,
    kernel_kills,
    ran_out,
    reason_of,
    streams,
)
from compilescope.base.processes.table import descendants, proportional_bytes, resident_bytes

_LOOK_S = 0.05
"""Between two looks at a process where the system has no other way to wait for its end. Chosen:
nobody notices, and looking twenty times a second costs little."""
_SHARE = 0.02
"""The most that looking at its memory may take of a core. Chosen: watching must not
slow the program down."""
_LONGEST_PACE_S = 1.0
"""Chosen: a program that grows slowly is stopped within about a second of its limit."""
_BACKSTOP = 4 << 30
"""Beyond the limit, at least. Chosen: more than twice what torch 2.11 maps with CUDA (1.7 GB)."""


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
    apart: bool = False,
    stopping: Stopping | None = None,
) -> ProcessEnd:
    """Run a command to its end, or to one of its limits, with all that it started.

    Its output goes to files in `folder`; with `tail_bytes` only the end of it is kept, in memory.
    `heard` gets all of it as it comes, stdout and stderr in one, of which a tail is kept too; with
    `apart` it gets stderr alone, and stdout is kept whole.
    """
    (folder / "stdin").write_bytes(stdin)
    kills = kernel_kills()
    begun = clock()
    with streams(folder, tail_bytes, heard, apart=apart) as (source, stdout, stderr):
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
            end_process(process)
        seconds = clock() - begun
        out, err = stdout.read_all(), stderr.read_all()
    exhausted = met == "memory" or ran_out(process.returncode, met, err, kills)
    reason = reason_of(process.returncode, met, err, limit_s, memory_bytes, exhausted)
    status = process.returncode
    return ProcessEnd(status, met == "time", out, err, seconds, exhausted, reason)


def run_within(
    command: Sequence[str], limit_s: float, **how: Any
) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run` with a timeout, on which no time counts in which we were stopped. It runs
    in a session of its own (Ctrl-C is for us), and what it started ends with it."""
    if how.pop("capture_output", False):
        how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    until = clock() + limit_s
    with subprocess.Popen(command, start_new_session=True, **how) as process:
        try:
            while (left := until - clock()) > 0:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = process.communicate(timeout=left)
                    return subprocess.CompletedProcess(command, process.returncode, out, err)
            raise subprocess.TimeoutExpired(command, limit_s)
        finally:
            end_process(process)


class Stopping:
    """Ends a program from outside: like Ctrl-C, so that it keeps what it has; then harder, each
    time that its grace has passed. Signal handlers may call it."""

    def __init__(self, grace_s: float, limit_s: float | None = None) -> None:
        self._grace_s = grace_s
        self._until = None if limit_s is None else clock() + limit_s
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
        return None if self._until is None else max(0.0, self._until - clock())

    def act(self, pid: int) -> None:
        """Take the step that is due, if any, against the program and all that it started."""
        with contextlib.suppress(OSError):
            os.read(self._woken, CHUNK)
        if self._until is None or clock() < self._until:
            return
        self.by = self.by or "time"
        step = self._steps.pop(0)
        self._until = clock() + self._grace_s if self._steps else None
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
        self._until = clock()
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
    until = None if limit_s is None else clock() + limit_s
    meter = None if memory_bytes is None else _MemoryMeter(process.pid, memory_bytes)
    with selectors.DefaultSelector() as selector, _end_of(process.pid) as ending:
        if ending is not None:
            selector.register(ending, selectors.EVENT_READ)
        if stopping is not None:
            selector.register(stopping, selectors.EVENT_READ)
        for stream in streams:
            if isinstance(stream, TailStream):
                selector.register(stream.pipe, selectors.EVENT_READ, stream)
        while process.poll() is None:
            left = None if until is None else until - clock()
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


class _MemoryMeter:
    """The memory of a process and its descendants, looked at only as often as that is cheap."""

    def __init__(self, pid: int, limit: int) -> None:
        self._pid = pid
        self._limit = limit
        self._next = 0.0

    @property
    def wait_s(self) -> float:
        return max(0.0, self._next - clock())

    def exceeded(self) -> bool:
        begun = clock()
        if begun < self._next:
            return False
        beyond = self._is_beyond()
        took = clock() - begun
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


def end_process(process: subprocess.Popen[Any], patience_s: float = 0.0) -> None:
    """Let it end by itself for so long; then nothing of its session goes on."""
    try:
        if patience_s:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
    finally:
        end_session(process.pid, running=process.poll() is None)
        process.wait()


def end_session(pid: int, *, running: bool) -> None:
    """Kill what is left of a session: its group, and children that made groups of their own."""
    others = descendants(pid) if running else []
    # The first one last: whoever kills us meanwhile finds what is left by it.
    for each in (*reversed(others), pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(each, signal.SIGKILL)
        if each != pid or running:  # A fork may not have a group of its own yet.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
