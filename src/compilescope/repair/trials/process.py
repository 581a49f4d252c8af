"""One process of the program, its output in files: never longer than its limit, never alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compilescope.errors import ToolError


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    status: int
    """As subprocess has it: negative for a signal."""
    timed_out: bool
    stdout: bytes
    stderr: bytes
    seconds: float


def run_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    stdin: bytes = b"",
    limit_s: float = 300.0,
    started: Callable[[int], None] | None = None,
) -> Ended:
    """Run a command to its end, or to the end of its time, with all that it started."""
    out, err, given = folder / "stdout", folder / "stderr", folder / "stdin"
    given.write_bytes(stdin)
    begun = time.monotonic()
    with out.open("wb") as stdout, err.open("wb") as stderr, given.open("rb") as source:
        try:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=source,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"Cannot start {command[0]}: {error.strerror}.") from None
        timed_out = False
        try:
            if started is not None:
                started(process.pid)
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            # Also at Ctrl-C, and for children that outlive the program.
            _end(process)
    seconds = time.monotonic() - begun
    return Ended(process.returncode, timed_out, out.read_bytes(), err.read_bytes(), seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    end_session(process.pid, running=process.poll() is None)
    process.wait()


def end_session(pid: int, *, running: bool) -> None:
    """Kill what is left of a session: its group, and children that made groups of their own."""
    others = _descendants(pid) if running else []
    for group in {pid, *others}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for child in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    """As far as this system tells."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = entry.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found
