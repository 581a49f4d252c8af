"""A sweep's run: machines and ended jobs, written as they come and once more when all have ended.

The run of one of its jobs is unpacked beside it when somebody asks for it (`opened_job`).
What a killed sweep leaves can be read like any other run; what it lacks is in its store.
"""

from __future__ import annotations

import difflib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from compilescope.analysis.sweeps import is_sweep, sweep_of
from compilescope.errors import ToolError
from compilescope.model.bodies import Body
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import EventFile
from compilescope.model.header import RunHeader, read_header, write_header
from compilescope.model.jobs import JobEnded
from compilescope.model.provenance import is_recorded_here
from compilescope.model.run import Run, read_run
from compilescope.scale.job import JobResult
from compilescope.scale.store import Store, key_of
from compilescope.sweep.advice import unpacked_run

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
        unpacked_run(Store(url), job, part)
        part.rename(target)
    except OSError as error:
        # Somebody else may have unpacked it meanwhile.
        if target.is_dir():
            return target
        raise ToolError(f"Cannot unpack the run of {job}: {error.strerror}.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target
