"""A sweep's run: machines and ended jobs, written as they come and once more when all have ended.

What a killed sweep leaves can be read like any other run; what it lacks is in its store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from compilescope.errors import ToolError
from compilescope.model.bodies import Body
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import EventFile
from compilescope.model.header import RunHeader, read_header, write_header
from compilescope.model.jobs import JobEnded
from compilescope.model.provenance import is_recorded_here
from compilescope.scale.job import JobResult

_EVENTS = "events-0.jsonl"
_PLACE = "sweep.json"


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
