"""One job, done here: its task called, measured, and cleaned up after. Both engines use it.

The task works at a desk: a folder of its own, programs within the job's limits, files to keep.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.child import run_process
from compilescope.base.processes.cleaner import adopt_orphans, children, end_children
from compilescope.base.processes.deadline import clock
from compilescope.base.processes.outcome import ProcessEnd
from compilescope.record.jobs import JobState
from compilescope.record.provenance import SEALS
from compilescope.scale.jobs.job import Finished, Job, JobLimits, JobResult, Verdict
from compilescope.scale.jobs.orphans import ProgramKeeper

_TAIL = 1 << 20
"""Bytes kept of the end of each stream of a program. Chosen: enough for any traceback."""


class WorkDesk:
    """What `work` hands to a task; `place` is a folder that nobody else uses."""

    def __init__(
        self,
        place: Path,
        limits: JobLimits,
        *,
        environment: Mapping[str, str] | None = None,
        began: Callable[[int], None] = lambda pid: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder = place / "desk"
        self.folder.mkdir()
        self._place = place
        self._limits = limits
        self._more = dict(environment or {})
        self._began = began
        self._ended = ended
        self._kept: Path | None = None
        self.seconds = 0.0
        """In programs."""

    def run(
        self, command: list[str], environment: Mapping[str, str], *, cwd: Path | None = None
    ) -> ProcessEnd:
        try:
            ended = run_process(
                command,
                {**environment, **self._more},
                self._place,
                limit_s=self._limits.seconds,
                memory_bytes=self._limits.memory_bytes,
                tail_bytes=_TAIL,
                cwd=cwd,
                started=self._began,
            )
        finally:
            self._ended()
        self.seconds += ended.seconds
        return ended

    def keep(self, folder: Path) -> None:
        if self.folder.resolve() not in (folder.resolve(), *folder.resolve().parents):
            raise ToolError(f"{folder} is not in the job's folder.")
        self._kept = folder

    def archive(self) -> bytes:
        """What `keep` named, as a zip file; equal files make equal bytes."""
        if self._kept is None or not self._kept.is_dir():
            return b""
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in _files(self._kept):
                entry = zipfile.ZipInfo(path.relative_to(self._kept).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
        return written.getvalue()


def _files(folder: Path) -> list[Path]:
    """Links are left out: what they name is not on another machine. A seal is no part of an
    archive."""
    found = []
    for place, _, names in os.walk(folder):
        paths = (Path(place) / name for name in names if name != SEALS)
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return sorted(found)


_MOST_REASON = 300
"""Letters. Chosen: a line or two of a table."""


def work(
    job: Job,
    machine: str,
    *,
    environment: Mapping[str, str] | None = None,
    outside: Callable[[bool], None] = lambda is_outside: None,
) -> Finished:
    """Do the job, whatever it does; Ctrl-C alone gets through.

    `environment` is added to that of every program. `outside` is called with False when a program
    begins, and with True when it has ended and the task itself works again.
    """
    adopt_orphans()
    keeper = ProgramKeeper.of_this_process()
    before = children()
    begun = clock()

    def began(pid: int) -> None:
        keeper.program(pid)
        outside(False)

    def ended() -> None:
        keeper.program(0)
        outside(True)

    place = Path(tempfile.gettempdir()) / f"compilescope-job-{uuid.uuid4().hex}"
    keeper.folder(str(place))
    try:
        place.mkdir(mode=0o700)
        desk = WorkDesk(place, job.limits, environment=environment, began=began, ended=ended)
        outside(True)
        verdict = _verdict(job, desk)
        archive, verdict = _kept(desk, verdict)
    except OSError as error:
        reason = f"No folder for the job can be made on {machine}: {_words(error)}"
        return Finished(JobResult(name=job.name, state="failed", reason=reason, machine=machine))
    finally:
        end_children(before)
        shutil.rmtree(place, ignore_errors=True)
        keeper.folder("")
    whole = clock() - begun
    result = JobResult(
        name=job.name,
        state=verdict.state,
        reason=verdict.reason,
        value=verdict.value,
        seconds=desk.seconds,
        overhead_seconds=max(0.0, whole - desk.seconds),
        machine=machine,
    )
    return Finished(result, archive)


def state_of(ended: ProcessEnd) -> JobState:
    """What a program's end makes of its job, where the task knows nothing better."""
    if ended.timed_out:
        return "timeout"
    if ended.out_of_memory:
        return "memory"
    if ended.status < 0:
        return "crashed"
    return "failed" if ended.status else "ok"


def _verdict(job: Job, desk: WorkDesk) -> Verdict:
    try:
        found = _task(job.task)(job.payload, desk)
        if not isinstance(found, Verdict):
            return Verdict(state="failed", reason=f"{job.task} returned no Verdict.")
        # As a reader will have it: whatever is no JSON shows here, in its own job.
        value = msgspec.json.decode(msgspec.json.encode(found.value))
    except MemoryError as error:
        return Verdict(state="memory", reason=_words(error))
    except (Exception, SystemExit) as error:
        return Verdict(state="failed", reason=_words(error))
    return Verdict(state=found.state, reason=found.reason, value=value)


def _task(name: str) -> Callable[[dict[str, Any], WorkDesk], Any]:
    module, _, function = name.partition(":")
    found: Callable[[dict[str, Any], WorkDesk], Any] = getattr(
        importlib.import_module(module), function
    )
    return found


def _kept(desk: WorkDesk, verdict: Verdict) -> tuple[bytes, Verdict]:
    """A job whose files can't be kept is done all the same, and says so."""
    try:
        return desk.archive(), verdict
    except (OSError, ValueError, MemoryError) as error:
        said = f"{verdict.reason} Its files were not kept: {_words(error)}".strip()
        return b"", msgspec.structs.replace(verdict, reason=said)


def _words(error: BaseException) -> str:
    if isinstance(error, ToolError):
        return error.message
    said = ""
    with contextlib.suppress(Exception):  # Its own __str__ may raise.
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    words = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return words if len(words) <= _MOST_REASON else words[: _MOST_REASON - 1] + "…"
