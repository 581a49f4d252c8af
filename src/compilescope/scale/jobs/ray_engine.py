"""Jobs on a Ray cluster: each on a node that we choose, and again elsewhere when that node dies."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.record.benchmark import Machine
from compilescope.record.jobs import JobState
from compilescope.scale.jobs.job import Finished, Job, JobProgress, JobResult, JobSource
from compilescope.scale.jobs.ray_cluster import (
    Nodes,
    RayNode,
    RaySession,
    cpus_of,
    first_line,
    only_on,
    open_session,
)
from compilescope.scale.jobs.ray_work import do

_ATTEMPTS = 3
"""Of a job whose node or worker died. Chosen: one more than on this machine, for nodes of a cluster
are taken away more often."""
_HEARTBEAT_S = 1.0
"""The longest pause between two signs of progress. Chosen: as on this machine."""
_LOOK_S = 3.0
"""Between two looks at the cluster. Chosen: its list of nodes is itself some seconds behind."""
_REJOIN_S = 30.0
"""How long a cluster may be without any node that can be used. Chosen: time for a node to start
again."""
_SILENCE_S = 20.0
"""How long its head node may be silent. After a minute Ray would end our process. Chosen: well
below that minute, so that the store is closed in order."""
_LEAVE_S = 5.0
"""For jobs that were cancelled to end. Chosen: as on this machine."""


class RayEngine:
    """Opened with `with`. `address` None: a cluster on this machine, which ends with us."""

    def __init__(
        self,
        address: str | None = None,
        *,
        jobs: int | None = None,
        working_dir: Path | None = None,
    ) -> None:
        """At most `jobs` at a time; None: as many as the nodes have room for. Jobs run in a copy of
        `working_dir`; None: where Ray's own processes run."""
        self._address = address
        self._most = jobs
        self._folder = working_dir
        self._session: RaySession | None = None
        self._nodes: Nodes | None = None
        self._machines: tuple[Machine, ...] = ()
        self._flying: dict[Any, _Flight] = {}
        self._waiting: deque[_Flight] = deque()
        self._done = 0
        self._looked = self._answered = self._usable = 0.0

    def __enter__(self) -> RayEngine:
        self._session = open_session(self._address, self._most, self._folder)
        try:
            ray = self._session.ray
            self._nodes = Nodes(ray)
            self._nodes.probe_all()
            self._do = ray.remote(max_retries=0)(do)
        except BaseException:
            self.__exit__()
            raise
        self._looked = self._answered = self._usable = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is None:
            return
        self._machines = self.machines()
        try:
            self._end(list(self._flying))
        finally:
            self._session.close()
            self._session = self._nodes = None

    def machines(self) -> tuple[Machine, ...]:
        """Also after the `with`: as they were at its end."""
        return self._machines if self._nodes is None else self._nodes.machines()

    def run(self, jobs: Iterable[Job], heard: Callable[[JobProgress], None]) -> Iterator[Finished]:
        source = JobSource(jobs, _Flight)
        try:
            while True:
                yield from self._send(source)
                heard(self._progress(source))
                if not self._flying and not self._waiting:
                    return
                for ref in self._landed():
                    finished = self._hear(ref)
                    if finished is not None:
                        self._done += 1
                        # Nodes work on while whoever asked does something with this one.
                        yield from self._send(source)
                        yield finished
                self._look()
        except KeyboardInterrupt:
            yield from self._cancelled()
            raise
        finally:
            self._end(list(self._flying))
            self._waiting.clear()

    def _send(self, source: JobSource[_Flight]) -> Iterator[Finished]:
        """Fill the nodes; a job that no node could ever hold ends at once."""
        nodes = self._opened()[1]
        while self._most is None or len(self._flying) < self._most:
            flight = self._waiting.popleft() if self._waiting else source.next()
            if flight is None:
                return
            usable = nodes.usable
            if usable and not any(node.could_hold(flight.job) for node in usable):
                self._done += 1
                yield _too_large(flight, usable)
                continue
            roomy = [node for node in usable if node.has_room(flight.job)]
            if not roomy:
                self._waiting.appendleft(flight)
                return
            self._launch(flight, min(roomy, key=lambda node: (node.id in flight.died, node.load)))

    def _launch(self, flight: _Flight, node: RayNode) -> None:
        ray = self._opened()[0].ray
        job = flight.job
        flight.begin(node)
        ref = self._do.options(
            num_cpus=cpus_of(job),
            # Ray divides one GPU, not several.
            num_gpus=math.ceil(job.gpus) if job.gpus > 1 else job.gpus,
            scheduling_strategy=only_on(ray, node.id),
        ).remote(msgspec.msgpack.encode(job))
        self._flying[ref] = flight

    def _landed(self) -> list[Any]:
        ray = self._opened()[0].ray
        if not self._flying:
            # Every node is gone, and jobs wait for one.
            time.sleep(_HEARTBEAT_S)
            return []
        refs = list(self._flying)
        ready, _ = ray.wait(refs, num_returns=1, timeout=_HEARTBEAT_S)
        if ready:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        return list(ready)

    def _hear(self, ref: Any) -> Finished | None:
        """How a job ended; None: its node or Ray's worker died, and it runs again."""
        ray = self._opened()[0].ray
        flight = self._flying.pop(ref)
        node = flight.end()
        try:
            data = ray.get(ref)
        except ray.exceptions.RayError as error:
            return self._died(flight, node, error)
        finished = msgspec.msgpack.decode(data, type=Finished)
        result = msgspec.structs.replace(
            finished.result,
            machine=node.machine.name,
            attempts=finished.result.attempts + flight.attempts - 1,
        )
        return msgspec.structs.replace(finished, result=result)

    def _died(self, flight: _Flight, node: RayNode, error: Exception) -> Finished | None:
        errors = self._opened()[0].ray.exceptions
        if isinstance(error, (errors.RayTaskError, errors.TaskCancelledError)):
            # Not the node's doing: another one would answer the same.
            return flight.ended("failed", f"The job could not be run: {first_line(error)}", node)
        if isinstance(error, (errors.NodeDiedError, errors.TaskUnschedulableError)):
            # The list of nodes may be some seconds behind.
            node.is_alive = False
        if isinstance(error, errors.TaskUnschedulableError):
            flight.attempts -= 1  # It never began.
        flight.died.add(node.id)
        if flight.attempts < _ATTEMPTS:
            self._waiting.append(flight)
            return None
        name = node.machine.name
        if isinstance(error, errors.OutOfMemoryError):
            reason = f"Ray stopped it {_ATTEMPTS} times because a node ran out of memory, last on "
            return flight.ended("memory", f"{reason}{name}.", node)
        how = "its node died" if not node.is_alive else "its Ray worker process died"
        reason = f"Its node or Ray worker died {_ATTEMPTS} times. The last time, {how}: {name}."
        return flight.ended("lost", reason, node)

    def _look(self) -> None:
        """Every few seconds: is the cluster there, and who is in it?"""
        session, nodes = self._opened()
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        if session.head_answers():
            self._answered = now
            nodes.look()
        elif now - self._answered > _SILENCE_S:
            raise ToolError(
                f"The Ray cluster's head node has not answered for {_SILENCE_S:g} s.",
                "Finished jobs are kept: run the same command with --resume.",
            )
        if nodes.usable:
            self._usable = now
        elif now - self._usable > _REJOIN_S:
            raise ToolError(
                f"The Ray cluster has had no usable node for {_REJOIN_S:g} s.",
                "Finished jobs are kept: run the same command with --resume.",
            )

    def _cancelled(self) -> Iterator[Finished]:
        flights = list(self._flying.values())
        nodes = [flight.node for flight in flights]
        self._end(list(self._flying))
        for flight, node in zip(flights, nodes, strict=True):
            assert node is not None
            yield flight.ended("cancelled", "The sweep was stopped while it ran.", node)

    def _end(self, refs: list[Any]) -> None:
        """Stop jobs: first so that they clean up, then by force."""
        if not refs:
            return
        ray = self._opened()[0].ray
        for ref in refs:
            flight = self._flying.pop(ref, None)
            if flight is not None:
                flight.end()
        for force in (False, True):
            for ref in refs:
                with contextlib.suppress(ray.exceptions.RayError, ValueError, TypeError):
                    ray.cancel(ref, force=force)
            _, refs = ray.wait(refs, num_returns=len(refs), timeout=_LEAVE_S)
            if not refs:
                return

    def _progress(self, source: JobSource[_Flight]) -> JobProgress:
        flights = sorted(self._flying.values(), key=lambda flight: flight.begun)
        running = tuple((each.job.name, each.node.machine.name) for each in flights if each.node)
        queued = len(self._waiting) if source.is_empty else None
        return JobProgress(done=self._done, running=running, queued=queued)

    def _opened(self) -> tuple[RaySession, Nodes]:
        assert self._session is not None, "Open the engine with `with`."
        assert self._nodes is not None
        return self._session, self._nodes


class _Flight:
    """A job on its way: on a node, or waiting for one."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.attempts = 0
        self.died: set[str] = set()
        """Nodes on which it, or they, died."""
        self.node: RayNode | None = None
        self.begun = 0.0

    def begin(self, node: RayNode) -> None:
        self.attempts += 1
        self.begun = time.monotonic()
        self.node = node
        node.take(self.job)

    def end(self) -> RayNode:
        node = self.node
        assert node is not None
        node.give_back(self.job)
        self.node = None
        return node

    def ended(self, state: JobState, reason: str, node: RayNode) -> Finished:
        result = JobResult(
            name=self.job.name,
            state=state,
            reason=reason,
            overhead_seconds=time.monotonic() - self.begun,
            attempts=self.attempts,
            machine=node.machine.name,
        )
        return Finished(result)


def _too_large(flight: _Flight, usable: list[RayNode]) -> Finished:
    job = flight.job
    largest = max(usable, key=lambda node: (node.gpus >= job.gpus, node.cpus, node.gpus))
    reason = (
        f"Needs {cpus_of(job):g} CPUs and {job.gpus:g} GPUs; the largest node has "
        f"{largest.cpus:g} and {largest.gpus:g}."
    )
    return Finished(JobResult(name=job.name, state="failed", reason=reason))
