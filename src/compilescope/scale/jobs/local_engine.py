"""Jobs on this machine: worker processes that are started once and do one job after the other.

GPUs are lent to jobs, whole ones to one job only.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import wait

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import clock, pauses
from compilescope.base.processes.outcome import status_words
from compilescope.base.processes.worker import Worker
from compilescope.base.settings import current_environment
from compilescope.measure.machine import this_machine
from compilescope.record.benchmark import Machine
from compilescope.record.jobs import JobState
from compilescope.scale.jobs.job import Finished, Job, JobProgress, JobResult, JobSource
from compilescope.scale.jobs.worker import STUCK, JobReply, Order


class Devices:
    """A job has whole ones to itself; jobs that ask for parts of one share it."""

    def __init__(self, count: int, environment: Mapping[str, str]) -> None:
        named = environment.get("CUDA_VISIBLE_DEVICES")
        known = [str(index) for index in range(count)]
        visible = known if named is None else [each.strip() for each in named.split(",")]
        self._used = {name: 0.0 for name in visible[:count] if name}

    @property
    def count(self) -> int:
        return len(self._used)

    def take(self, gpus: float) -> tuple[str, ...] | None:
        """None: not as many are free now."""
        share = min(gpus, 1.0)
        number = max(1, round(gpus)) if gpus > 0 else 0
        free = [name for name, used in self._used.items() if used + share <= 1.0 + 1e-9]
        if len(free) < number:
            return None
        # The fullest that still has room, so that whole ones stay free.
        taken = sorted(free, key=lambda name: -self._used[name])[:number]
        for name in taken:
            self._used[name] += share
        return tuple(taken)

    def give_back(self, names: tuple[str, ...], gpus: float) -> None:
        for name in names:
            self._used[name] = max(0.0, self._used[name] - min(gpus, 1.0))


_ATTEMPTS = 2
"""A worker that dies may have been killed by chance; the second one that dies was not. Chosen."""
_TASK_S = 300.0
"""A task that reads and computes may take as long, where its programs have a shorter limit. Chosen:
it ends what hangs."""
_HEARTBEAT_S = 1.0
"""The longest pause between two signs of progress. Chosen: a person sees that it lives."""
_LEAVE_S = 5.0
"""For a worker to end by itself before it is killed. Chosen: time to end its program and clean up,
while whoever pressed Ctrl-C waits."""
_MOST_UNBORN = 3
"""Workers in a row that could not start. Chosen: three in a row are no accident."""
_MOST_STILLBORN = 30
"""Likewise, where they were killed: somebody may kill them by chance. Chosen: ten times as many."""
_START = (
    "import sys; sys.path[:] = {path!r}\n"
    "from compilescope.scale.jobs.worker import main\n"
    "main({driver}, {machine!r}, {task})"
)


class LocalEngine:
    """As many jobs at a time as it is told; a worker that dies costs its own job at most.

    A job's `cpus` is not counted here: `jobs` says how many run at once.
    """

    def __init__(
        self,
        jobs: int,
        *,
        task_seconds: float = _TASK_S,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: of the worker processes, in place of this process's own."""
        self._most = jobs
        self._environment = environment
        self._task_seconds = task_seconds
        self._machine = this_machine()
        self._devices = Devices(len(self._machine.accelerators), current_environment())
        self._workers: list[_JobWorker] = []
        self._again: deque[_StartedJob] = deque()
        self._stillborn = 0
        self._done = 0

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(self._workers)

    def machines(self) -> tuple[Machine, ...]:
        return (self._machine,)

    def run(self, jobs: Iterable[Job], heard: Callable[[JobProgress], None]) -> Iterator[Finished]:
        source = JobSource(jobs, _StartedJob)
        try:
            while True:
                yield from self._hand_out(source)
                heard(self._progress(source))
                running = [worker for worker in self._workers if worker.handed]
                if not running:
                    return
                ready = wait([worker.channel.fileno() for worker in running], _HEARTBEAT_S)
                for worker in [each for each in running if each.channel.fileno() in ready]:
                    finished = self._hear(worker)
                    if finished is not None:
                        self._done += 1
                        # Work goes on while whoever asked does something with this one.
                        yield from self._hand_out(source)
                        yield finished
        except KeyboardInterrupt:
            yield from self._cancelled()
            raise
        finally:
            self._stop([worker for worker in self._workers if worker.handed])

    def _hand_out(self, source: JobSource[_StartedJob]) -> Iterator[Finished]:
        """Give jobs to whoever is free; what can't be run here ends at once."""
        while sum(worker.handed is not None for worker in self._workers) < self._most:
            handed = self._again.popleft() if self._again else source.next()
            if handed is None:
                return
            if handed.job.gpus > self._devices.count:
                self._done += 1
                yield _without_devices(handed.job, self._devices.count, self._machine.name)
                continue
            devices = self._devices.take(handed.job.gpus)
            if devices is None:
                self._again.appendleft(handed)
                return
            handed.devices = devices
            self._free_worker().hand(handed)

    def _free_worker(self) -> _JobWorker:
        for worker in self._workers:
            if worker.handed is None:
                return worker
        self._workers.append(_JobWorker(self._machine.name, self._task_seconds, self._environment))
        return self._workers[-1]

    def _hear(self, worker: _JobWorker) -> Finished | None:
        """What a worker has to say; None where its job has not ended."""
        reply = worker.reply()
        if reply is None:
            return self._buried(worker)
        if reply.finished is None:
            self._stillborn = 0
            return None
        handed = self._taken_back(worker)
        if reply.retires:
            self._stop([worker])
        result = msgspec.structs.replace(reply.finished.result, attempts=handed.attempts)
        return msgspec.structs.replace(reply.finished, result=result)

    def _buried(self, worker: _JobWorker) -> Finished | None:
        """A worker has died: its job is tried once more, or ends."""
        handed = self._taken_back(worker)
        self._stop([worker])
        if not worker.is_ready:
            self._stillborn += 1
            if self._stillborn >= (_MOST_STILLBORN if worker.status < 0 else _MOST_UNBORN):
                raise ToolError(f"Cannot start a worker process: {worker.last_words()}")
            handed.attempts -= 1
        state, reason = worker.how_it_died()
        # Ctrl-Z came into it. The watch over its task (see `worker`) ran on: this does not count.
        was_stopped = handed.pauses != pauses()
        handed.attempts -= was_stopped
        if was_stopped or (state != "timeout" and handed.attempts < _ATTEMPTS):
            self._again.append(handed)
            return None
        result = JobResult(
            name=handed.job.name,
            state=state,
            reason=reason,
            overhead_seconds=clock() - handed.begun,
            attempts=handed.attempts,
            machine=self._machine.name,
        )
        return Finished(result)

    def _taken_back(self, worker: _JobWorker) -> _StartedJob:
        handed = worker.handed
        assert handed is not None
        worker.handed = None
        self._devices.give_back(handed.devices, handed.job.gpus)
        return handed

    def _cancelled(self) -> Iterator[Finished]:
        busy = [worker for worker in self._workers if worker.handed]
        handed = [self._taken_back(worker) for worker in busy]
        self._stop(busy)
        for each in handed:
            result = JobResult(
                name=each.job.name,
                state="cancelled",
                reason="The sweep was stopped while it ran.",
                attempts=each.attempts,
                machine=self._machine.name,
            )
            yield Finished(result)

    def _stop(self, workers: list[_JobWorker]) -> None:
        """All at once, since each may take a moment to end its program."""
        leaving = list(workers)
        self._workers = [worker for worker in self._workers if worker not in leaving]
        for worker in leaving:
            worker.stop()
        for worker in leaving:
            worker.end(_LEAVE_S)

    def _progress(self, source: JobSource[_StartedJob]) -> JobProgress:
        handed = [worker.handed for worker in self._workers if worker.handed is not None]
        handed.sort(key=lambda each: each.begun)
        return JobProgress(
            done=self._done,
            running=tuple((each.job.name, self._machine.name) for each in handed),
            queued=len(self._again) if source.is_empty else None,
        )


class _StartedJob:
    """A job in some worker's hands."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.attempts = 0
        self.pauses = 0
        self.begun = clock()
        self.devices: tuple[str, ...] = ()


class _JobWorker(Worker):
    """Our end of a worker process."""

    def __init__(
        self, machine: str, task_seconds: float, environment: Mapping[str, str] | None
    ) -> None:
        self.handed: _StartedJob | None = None
        self.is_ready = False
        code = _START.format(path=sys.path, driver=os.getpid(), machine=machine, task=task_seconds)
        # -I: a file in the user's folder must not hide a module of ours.
        super().__init__([sys.executable, "-I", "-c", code], keeps_time=True, env=environment)

    def hand(self, handed: _StartedJob) -> None:
        handed.attempts += 1
        handed.begun = clock()
        handed.pauses = pauses()
        self.handed = handed
        more = {"CUDA_VISIBLE_DEVICES": ",".join(handed.devices)} if handed.devices else {}
        self.send(msgspec.msgpack.encode(Order(handed.job, more)))

    def reply(self) -> JobReply | None:
        """None: it has died."""
        try:
            reply = msgspec.msgpack.decode(self.hear() or b"", type=JobReply)
        except msgspec.MsgspecError:
            return None
        self.is_ready = True
        return reply

    def last_words(self) -> str:
        return self.last_line or status_words(self.status)

    def how_it_died(self) -> tuple[JobState, str]:
        """After `end`."""
        if any(line.startswith(STUCK) for line in self.said.splitlines()):
            return "timeout", "Its task took too long outside of its programs, and was stopped."
        words = status_words(self.status)
        if self.killed_for_memory:
            return "memory", f"Its worker process ran out of memory: {words}"
        return "crashed", f"Its worker process died twice. The last time: {words}"


def _without_devices(job: Job, count: int, machine: str) -> Finished:
    reason = f"Needs {job.gpus:g} GPUs; {machine} has {count}."
    return Finished(JobResult(name=job.name, state="failed", reason=reason, machine=machine))
