"""A job, how it ended, and who runs jobs: what a scheduler, its engines and its store speak of.

A job names a task, `module:function`. A worker calls it with the job's payload and a Desk; what it
returns is plain JSON. The task starts programs only through the Desk, which holds them to the job's
limits; whatever they do, the task itself returns. An engine ends every job that it was given, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from compilescope.base.processes.outcome import ProcessEnd
from compilescope.record.benchmark import Machine
from compilescope.record.jobs import JobState

T = TypeVar("T")


class JobLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one program of a job may use. None: no limit."""

    seconds: float | None = None
    memory_bytes: int | None = None
    """Of the program and all that it started, together."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do, once."""

    name: str
    """Unique within its sweep."""
    task: str
    """`module:function`, called as function(payload, desk)."""
    payload: dict[str, Any] = {}
    limits: JobLimits = JobLimits()
    cpus: float = 1
    gpus: float = 0


class JobResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job ended. The store keeps one for each finished job."""

    name: str
    state: JobState
    reason: str = ""
    value: dict[str, Any] | None = None
    """What the task returned."""
    seconds: float = 0.0
    """In its programs."""
    overhead_seconds: float = 0.0
    """What the worker took beyond that."""
    attempts: int = 1
    machine: str = ""
    archive: str = ""
    """The job's folder in the store; empty: nothing was kept."""


class Desk(Protocol):
    """Where a task works: a folder of its own, and the one way to start a program."""

    folder: Path
    """Empty at first; removed afterwards, but for what `keep` named."""

    def run(
        self, command: list[str], environment: Mapping[str, str], *, cwd: Path | None = None
    ) -> ProcessEnd:
        """Run a program within the job's limits; `Ended` says which of them it met."""
        ...

    def keep(self, folder: Path) -> None:
        """Put this folder, which lies in `self.folder`, into the store as the job's archive."""
        ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a task returns: the state it comes to, and plain JSON for whoever asked."""

    state: JobState
    reason: str = ""
    value: dict[str, Any] = {}


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the jobs stand, over all machines."""

    done: int
    running: tuple[tuple[str, str], ...]
    """(job, machine), oldest first."""
    queued: int | None = None
    """None while the jobs are still being listed."""


class Finished(msgspec.Struct, frozen=True):
    """A job's result, and its archive: a zip file's bytes, empty where nothing was kept."""

    result: JobResult
    archive: bytes = b""


class JobSource(Generic[T]):
    """The jobs to come, taken one by one, each as what an engine makes of it."""

    def __init__(self, jobs: Iterable[Job], made: Callable[[Job], T]) -> None:
        self._jobs = iter(jobs)
        self._made = made
        self.is_empty = False

    def next(self) -> T | None:
        job = None if self.is_empty else next(self._jobs, None)
        self.is_empty = job is None
        return None if job is None else self._made(job)


class Engine(Protocol):
    """Opened with `with`; leaving it ends everything that it started."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def machines(self) -> tuple[Machine, ...]:
        """The machines that take part, and those that can't, with the reason."""
        ...

    def run(self, jobs: Iterable[Job], heard: Callable[[JobProgress], None]) -> Iterator[Finished]:
        """Each job's end, as they come. Takes a job from `jobs` only when there is room for it."""
        ...
