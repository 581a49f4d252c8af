"""Where a sweep's results are: a plan, a record for each finished job, and what jobs kept.

    sweep.json            the plan
    jobs/KEY.json         the result of a finished job; that it exists is what makes it finished
    archives/KEY.zip      what the job kept
    lease.json            the driver that writes here now

Only the driver writes, so nodes need no credentials.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from compilescope.errors import ToolError
from compilescope.model.jobs import JobState
from compilescope.scale.engine import Finished
from compilescope.scale.job import Job, JobResult
from compilescope.scale.lease import Lease
from compilescope.scale.place import StorePlace
from compilescope.version import VERSION

_PLAN = "sweep.json"
# Chosen: letters of a job's name in a file's name, and damaged files that a warning names.
_MOST_NAME = 60
_MOST_NAMED = 3


class StorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a store's results belong to. Results of another plan can't be mixed with them."""

    id: str
    version: str
    """Of compilescope."""
    jobs: int
    jobs_hash: str
    options: dict[str, Any] = {}
    """Whatever changes the results, by the name that a user knows it under."""


def plan_of(jobs: Iterable[Job], options: dict[str, Any]) -> StorePlan:
    """A new plan. Two jobs of one name: a ToolError."""
    found = hashlib.sha256()
    names: set[str] = set()
    for job in jobs:
        if job.name in names:
            raise ToolError(f"Two jobs are named {job.name}.", "Give each job a name of its own.")
        names.add(job.name)
        found.update(msgspec.json.encode(job, order="sorted") + b"\n")
    plain = msgspec.json.decode(msgspec.json.encode(options))
    return StorePlan(
        id=uuid.uuid4().hex[:12],
        version=VERSION,
        jobs=len(names),
        jobs_hash=found.hexdigest(),
        options=plain,
    )


def key_of(name: str) -> str:
    """A file name for any job name: readable, and different for different names."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_MOST_NAME].strip(".-")
    return f"{plain or 'job'}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class _Named(msgspec.Struct):
    """The part of a record that says whose it is: all that resuming needs."""

    name: str
    state: JobState


class Store:
    """Reading needs nothing; writing needs `begin`, and `close` (or `with`) at its end."""

    def __init__(
        self, url: str, *, place: StorePlace | None = None, lease: Lease | None = None
    ) -> None:
        self._place = place or StorePlace(url)
        self._lease = lease or Lease(self._place)
        self._holds = False
        self.url = self._place.url
        self.notes: list[str] = []
        """What a reader of the sweep must know of its store, in sentences."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, plan: StorePlan, *, resume: bool = False) -> StorePlan:
        """Take the store for this plan; the plan as it is stored. A ToolError where it can't be
        written to, or holds something else."""
        taken_over = self._lease.take()
        self._holds = True
        try:
            if taken_over:
                self.notes.append(taken_over)
            return self._begun(plan, resume)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._holds:
            self._lease.release()
            self._holds = False

    def sweep(self) -> StorePlan | None:
        """The plan of what is here; None: nothing is."""
        data = self._place.read(_PLAN)
        try:
            return None if data is None else msgspec.json.decode(data, type=StorePlan)
        except msgspec.MsgspecError:
            raise ToolError(
                f"The store {self.url} has a {_PLAN} that is not readable.",
                "Name another store, or empty this one.",
            ) from None

    def names(self) -> frozenset[str]:
        """The finished jobs. A record that is not readable is none: its job runs again."""
        found = set()
        garbled = []
        for path, data in self._records():
            named = _decoded(data, _Named)
            if named is not None and path == _record(named.name):
                found.add(named.name)
            else:
                garbled.append(path)
        if garbled and _garbled(garbled) not in self.notes:
            self.notes.append(_garbled(garbled))
        return frozenset(found)

    def results(self) -> Iterator[JobResult]:
        """The finished jobs' results, one after the other, in the order of their keys."""
        for path, data in self._records():
            result = _decoded(data, JobResult)
            if result is not None and path == _record(result.name):
                yield result

    def finished(self) -> dict[str, JobResult]:
        """All results at once."""
        return {result.name: result for result in self.results()}

    def result(self, name: str) -> JobResult | None:
        data = self._place.read(_record(name))
        return None if data is None else _decoded(data, JobResult)

    def put(self, finished: Finished) -> JobResult:
        """Keep a result; when this returns, the job is finished for good."""
        self._lease.check()
        result = finished.result
        if finished.archive:
            archive = _archive(result.name)
            self._place.write(archive, finished.archive)
            result = msgspec.structs.replace(result, archive=archive)
        self._place.write(_record(result.name), msgspec.json.encode(result))
        return result

    def archive(self, name: str) -> bytes:
        """A zip file; empty where the job kept nothing."""
        return self._place.read(_archive(name)) or b""

    def _begun(self, plan: StorePlan, resume: bool) -> StorePlan:
        stored = self.sweep()
        if stored is None:
            self._place.write(_PLAN, msgspec.json.encode(plan), tries=1)
            return plan
        different = _differences(stored, plan)
        if different:
            raise ToolError(
                f"The store {self.url} holds another sweep: {'; '.join(different)}.",
                "Name another store, or run the sweep as it was begun.",
            )
        done = 0 if resume else len(self.names())
        if done:
            raise ToolError(
                f"The store {self.url} already holds {done} of {stored.jobs} results of this "
                "sweep.",
                "Add --resume to continue it, or name another store.",
            )
        return stored

    def _records(self) -> Iterator[tuple[str, bytes]]:
        return self._place.read_many(self._place.names("jobs", ".json"))


def _record(name: str) -> str:
    return f"jobs/{key_of(name)}.json"


def _archive(name: str) -> str:
    return f"archives/{key_of(name)}.zip"


def _decoded(data: bytes, kind: type[msgspec.Struct]) -> Any:
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(data, type=kind)
    return None


def _garbled(paths: list[str]) -> str:
    named = ", ".join(paths[:_MOST_NAMED]) + (", …" if len(paths) > _MOST_NAMED else "")
    if len(paths) == 1:
        return f"1 result in the store is not readable, so its job runs again: {named}."
    return f"{len(paths)} results in the store are not readable, so their jobs run again: {named}."


def _differences(stored: StorePlan, plan: StorePlan) -> list[str]:
    found = []
    if stored.version != plan.version:
        found.append(f"made by compilescope {stored.version}, not {plan.version}")
    for name in sorted({*stored.options, *plan.options}):
        before, now = stored.options.get(name), plan.options.get(name)
        if before != now:
            found.append(f"{name} was {_value(before)}, not {_value(now)}")
    if stored.jobs != plan.jobs:
        found.append(f"{stored.jobs} jobs, not {plan.jobs}")
    elif not found and stored.jobs_hash != plan.jobs_hash:
        found.append("its jobs are not the same")
    return found


def _value(value: Any) -> str:
    return "not set" if value is None else msgspec.json.encode(value).decode()
