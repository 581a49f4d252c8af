"""A sweep's run: machines and ended jobs, written as they come and once more when all have ended;
and which fix is advised for each cause, within a bound on time.

The run of one of its jobs is unpacked beside it when somebody asks for it (`opened_job`).
What a killed sweep leaves can be read like any other run; what it lacks is in its store.

Each cause is asked about once, in one stored run that has it.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import clock
from compilescope.change.fixes.advice import advised
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.sweeps import is_sweep, sweep_of
from compilescope.record.bodies import Body
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import EventFile
from compilescope.record.header import RunHeader, read_header, write_header
from compilescope.record.jobs import JobCause, JobEnded
from compilescope.record.provenance import is_recorded_here
from compilescope.record.run import Run, read_run
from compilescope.report.sharing.archive import UnpackLimits, opened
from compilescope.scale.jobs.job import JobResult
from compilescope.scale.jobs.store import Store, key_of

_EVENTS = "events-0.jsonl"
_PLACE = "sweep.json"
_OPENED = "opened"


class SweepPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the jobs' own runs are: kept beside the events, in `sweep.json`."""

    store: str
    """A URL, or a folder's name within the run's own."""


class SweepRecord:
    """The writing end of a sweep's run."""

    def __init__(self, folder: Path, header: RunHeader) -> None:
        self.folder = folder
        self._header = header
        self._number = 0
        (folder / _EVENTS).unlink(missing_ok=True)
        self._file, _ = EventFile.claim(folder, 0)

    def add(self, body: Body) -> None:
        self._file.write(encode(self._event(body, time.time_ns())))

    def end(self, bodies: Iterable[Body], exit_status: int) -> None:
        """Replace what was written by these, in this order, and close the run."""
        self._file.close()
        part = self.folder / f".{_EVENTS}.{os.getpid()}.part"
        self._number = 0
        # Events are read in the order of their times.
        first = time.time_ns()
        try:
            with part.open("wb") as file:
                for number, body in enumerate(bodies):
                    file.write(encode(self._event(body, first + number)) + b"\n")
            part.replace(self.folder / _EVENTS)
            write_header(
                self.folder,
                msgspec.structs.replace(
                    self._header, ended_ns=time.time_ns(), exit_status=exit_status
                ),
            )
        except OSError as error:
            raise ToolError(
                f"Cannot write the sweep's run to {self.folder}: {error.strerror}.",
                "Its results are in the store: free some space and add --resume.",
            ) from None
        finally:
            part.unlink(missing_ok=True)

    def _event(self, body: Body, time_ns: int) -> Event:
        self._number += 1
        return Event(id=f"0.{self._number}", time_ns=time_ns, pid=os.getpid(), body=body)


def write_place(folder: Path, store: str) -> None:
    (folder / _PLACE).write_bytes(msgspec.json.encode(SweepPlace(store=store)) + b"\n")


def store_url(folder: Path) -> str:
    """Of the sweep whose run is in this folder; empty where it is no sweep's, or of one that was
    not recorded here: whoever made it may name any place."""
    try:
        if not is_recorded_here(folder, read_header(folder)):
            return ""
        place = msgspec.json.decode((folder / _PLACE).read_bytes(), type=SweepPlace)
    except (OSError, ToolError, msgspec.MsgspecError):
        return ""
    return place.store if "://" in place.store else str(folder / place.store)


def job_ended(result: JobResult) -> JobEnded:
    """A store's result as the record has it."""
    value: dict[str, Any] = dict(result.value or {})
    known = {name: value[name] for name in JobEnded.__struct_fields__ if name in value}
    known |= {
        "name": result.name,
        "state": result.state,
        "reason": result.reason,
        "seconds": value.get("seconds", result.seconds),
        "overhead_seconds": result.overhead_seconds,
        "attempts": result.attempts,
        "machine": result.machine,
        "run": result.archive,
    }
    return msgspec.convert({"kind": "JobEnded", **known}, JobEnded)


def find_job(run: Run, job: str) -> JobEnded:
    """How a job of the sweep ended."""
    if not is_sweep(run):
        raise ToolError(f"{run.header.run} is not a sweep: leave out --job.")
    names = {each.name: each for each in sweep_of(run).jobs}
    if job not in names:
        near = difflib.get_close_matches(job, names, 3)
        hint = f"Did you mean {', '.join(near)}?" if near else "`--json` lists the jobs."
        raise ToolError(f"The sweep {run.header.run} has no job {job}.", hint)
    return names[job]


def opened_job(sweep: Path, job: str) -> Path:
    """The folder of a job's run."""
    ended = find_job(read_run(sweep), job)
    target = sweep / _OPENED / key_of(job)
    if target.is_dir():
        return target
    url = store_url(sweep)
    if not url:
        raise ToolError(
            f"The run of {job} can't be opened: the sweep's store is not on this machine.",
            hint="An exported sweep does not contain the runs of its jobs.",
        )
    if not ended.run:
        raise ToolError(f"The sweep has no run of {job}, which ended as {ended.state}.")
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        _unpacked_run(Store(url), job, part)
        part.rename(target)
    except OSError as error:
        # Somebody else may have unpacked it meanwhile.
        if target.is_dir():
            return target
        raise ToolError(f"Cannot unpack the run of {job}: {error.strerror}.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


Key = tuple[str, str]
"""Kind and fingerprint of a cause."""
ADVICE_SECONDS = 60.0
"""For all proposals together. Chosen: nobody waits much longer at the end of a sweep; causes of
most jobs come first."""


class FixAdvice(msgspec.Struct, frozen=True):
    """What the fixes say."""

    fixes: dict[Key, str]
    """The id of the fix that is advised first, for causes that have one."""
    left: int = 0
    """Causes that were not asked about: the time was over, or their runs could not be read."""

    def filled(self, job: JobEnded) -> JobEnded:
        return msgspec.structs.replace(job, causes=tuple(map(self._cause, job.causes)))

    def _cause(self, cause: JobCause) -> JobCause:
        fix = self.fixes.get(_cause_key(cause), "")
        return msgspec.structs.replace(cause, fix=fix, fix_title=_titles().get(fix, ""))


def _cause_key(cause: JobCause) -> Key:
    return cause.kind, cause.fingerprint


def advise(
    jobs: Callable[[], Iterable[JobEnded]], store: Store, seconds: float = ADVICE_SECONDS
) -> FixAdvice:
    """`jobs` are read twice: they may be more than memory holds. Causes that most jobs have come
    first."""
    often: dict[Key, int] = {}
    where: dict[Key, str] = {}
    for job in jobs():
        for cause in job.causes:
            # What follows from another break goes away with it.
            if cause.level != "note" and job.run:
                key = _cause_key(cause)
                often[key] = often.get(key, 0) + 1
                where.setdefault(key, job.name)
    until = clock() + seconds
    fixes: dict[Key, str] = {}
    asked: set[Key] = set()
    for key in sorted(often, key=lambda each: -often[each]):
        if key in asked or clock() > until:
            continue
        found = _fixes_of(store, where[key])
        asked.update(found)
        fixes.update({each: fix for each, fix in found.items() if fix})
    return FixAdvice(fixes, len(often.keys() - asked))


def _fixes_of(store: Store, job: str) -> dict[Key, str]:
    """Of every cause of one job's run."""
    try:
        with tempfile.TemporaryDirectory(prefix="compilescope-sweep-") as folder:
            run = _unpacked_run(store, job, Path(folder) / "run")
            seen = advised(run, digest(run))
            return {
                (each.kind, each.fingerprint): next(
                    (a.fix for a in each.advice if a.fix and a.status != "by hand"), ""
                )
                for each in findings(seen)
            }
    except (ToolError, OSError):
        return {}


def _unpacked_run(store: Store, job: str, folder: Path) -> Run:
    """The run of one job, unpacked into a new folder."""
    data = store.archive(job)
    if not data:
        raise ToolError(f"The sweep kept no run of {job}.")
    folder.mkdir(parents=True)
    (folder / "artifacts").mkdir()
    packed = folder.with_suffix(".zip")
    packed.write_bytes(data)
    try:
        with opened(packed, UnpackLimits()) as archive:
            archive.extract(folder)
    finally:
        packed.unlink()
    return read_run(folder)


def _titles() -> dict[str, str]:
    return {fix.id: fix.title for fix in all_fixes()}
