"""Jobs through an engine into a store: each ends once, and what has ended is not run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized

import msgspec

from compilescope.base.errors import ToolError
from compilescope.scale.jobs.job import Engine, Job, JobProgress, JobResult
from compilescope.scale.jobs.store import Store

_UNFINISHED = ("cancelled",)


def run_jobs(
    jobs: Iterable[Job], engine: Engine, store: Store, heard: Callable[[JobProgress], None]
) -> Iterator[JobResult]:
    """The results of the jobs that the store has not, in the order they end.

    A result is in the store before it is yielded; `cancelled` ones are yielded and not stored, so
    that they run again. At Ctrl-C the running jobs come as `cancelled`, then KeyboardInterrupt.
    """
    queue = _Queue(jobs, store.names())
    finished = engine.run(queue, lambda progress: heard(queue.completed(progress)))
    for each in finished:
        if not queue.take_back(each.result.name):
            continue  # Run twice, since a node seemed lost: the first result counts.
        if each.result.state in _UNFINISHED:
            yield each.result
        else:
            yield store.put(each)


class _Queue:
    """The jobs that are left, handed out one by one."""

    def __init__(self, jobs: Iterable[Job], done: frozenset[str]) -> None:
        self._jobs = jobs
        self._done = done
        self._skipped = 0
        self._names: set[str] = set()
        self._out: set[str] = set()

    def __iter__(self) -> Iterator[Job]:
        for job in self._jobs:
            if job.name in self._names:
                raise ToolError(f"Two jobs are named {job.name}.")
            self._names.add(job.name)
            if job.name in self._done:
                self._skipped += 1
                continue
            self._out.add(job.name)
            yield job

    def take_back(self, name: str) -> bool:
        """False: it was not handed out, or has come back already."""
        if name not in self._out:
            return False
        self._out.remove(name)
        return True

    def completed(self, progress: JobProgress) -> JobProgress:
        """With what the store had before, which the engine knows nothing of."""
        done = progress.done + self._skipped
        queued = progress.queued
        if isinstance(self._jobs, Sized):
            done = progress.done + len(self._done)
            queued = max(0, len(self._jobs) - done - len(progress.running))
        return msgspec.structs.replace(progress, done=done, queued=queued)
