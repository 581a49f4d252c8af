"""Who runs jobs: what the local pool and Ray have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec

from compilescope.model.benchmarked import Machine
from compilescope.scale.job import Job, JobResult


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
