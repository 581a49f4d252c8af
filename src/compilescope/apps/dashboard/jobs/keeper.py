"""The process that keeps one job: `python -m compilescope.apps.dashboard.jobs.keeper FOLDER`.

It starts the command, writes down what it prints and how it ends, and hands on orders to stop:
SIGTERM asks politely, SIGUSR1 kills. It is in a session of its own and needs no server.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from compilescope.apps.dashboard.jobs.job import (
    ENDED,
    REQUEST,
    RUNS,
    STARTED,
    STOP,
    UPLOAD,
    JobEnd,
    JobRequest,
    OutputLog,
    Started,
    StopOrder,
    read_record,
    write_record,
)
from compilescope.base.errors import ToolError
from compilescope.base.processes.child import Stopping, run_process
from compilescope.base.processes.cleaner import adopt_orphans, end_children
from compilescope.base.processes.outcome import ProcessEnd, status_words
from compilescope.base.settings import job_environment

_ERROR = re.compile(r"^compilescope: error: (.+)$", re.MULTILINE)
_MOST_SAID = 500
"""Letters of a command's last line. Chosen: a line or two of a page."""
RESERVE = ".reserve"
"""Room on the disk for the last record, which the job's own output may have filled."""
GRACE_S = 10.0
"""Between two steps of a stop: Ctrl-C, `kill`, `kill -9`. Chosen: time to write down what was
found; docs/guides/dashboard.md says it to users."""


def tool_command(words: Sequence[str]) -> list[str]:
    """The tool itself, by this interpreter. Files in the job's folder must not hide its modules."""
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "compilescope", *words]


def keep(folder: Path, *, grace_s: float = GRACE_S, command: Sequence[str] | None = None) -> None:
    """From the start of the command to its end. `command`: instead of the tool itself."""
    request = read_record(folder, REQUEST, JobRequest)
    if request is None:
        raise SystemExit(f"{folder} holds no job.")
    started = Started(keeper=os.getpid(), started=time.time())
    stopping = Stopping(grace_s, request.limit_s)
    _hear(stopping)
    adopt_orphans()
    write_record(folder, STARTED, started)
    with contextlib.suppress(OSError):
        (folder / RESERVE).write_bytes(bytes(4096))
    # An order from before we could hear it.
    order = read_record(folder, STOP, StopOrder)
    if order is not None:
        (stopping.kill if order.kill else stopping.ask)()
    log = OutputLog(folder, request.output_bytes)

    def note_pid(pid: int) -> None:
        with contextlib.suppress(OSError):
            write_record(
                folder, STARTED, msgspec.structs.replace(started, pid=pid, pid_at=time.time())
            )

    status, reason = None, ""
    try:
        _check_folder(request.cwd)
        ended = run_process(
            command or tool_command(request.words),
            job_environment(folder / RUNS),
            folder,
            limit_s=None,
            cwd=Path(request.cwd),
            started=note_pid,
            heard=log.write,
            stopping=stopping,
        )
        status, reason = ended.status, _reason(ended)
    except ToolError as error:
        reason = error.message
    finally:
        end_children(())
        log.close()
        for leftover in (UPLOAD, "stdin", RESERVE):
            _remove(folder / leftover)
    if stopping.by == "time":
        assert request.limit_s is not None
        reason = f"Stopped at its time limit of {request.limit_s:g} s."
    end = JobEnd(
        ended=time.time(),
        status=status,
        stopped_by=stopping.by,
        reason=reason,
        dropped_bytes=log.dropped,
    )
    write_record(folder, ENDED, end)


def _reason(ended: ProcessEnd) -> str:
    """Why it failed. The last line alone may be a part of any answer: only an error counts."""
    if ended.status <= 0 or ended.out_of_memory or b"Traceback (most recent" in ended.stdout:
        return ended.reason
    said = _ERROR.findall(ended.stdout.decode("utf-8", "replace"))
    words = status_words(ended.status)
    return f"{words.rstrip('.')}: {said[-1].strip()[:_MOST_SAID]}" if said else words


def _hear(stopping: Stopping) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.ask())
    signal.signal(signal.SIGUSR1, lambda *_: stopping.kill())


def _check_folder(cwd: str) -> None:
    if not os.path.isdir(cwd):
        raise ToolError(f"There is no folder {cwd} any more.")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
