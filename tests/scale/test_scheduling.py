"""Exactly one result for each job, whatever an engine, a store and their deaths make of it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compilescope.base.errors import ToolError
from compilescope.record.benchmark import Machine
from compilescope.scale.jobs.job import Finished, Job, JobProgress, JobResult
from compilescope.scale.jobs.schedule import run_jobs
from compilescope.scale.jobs.store import Store, StorePlace, plan_of


class DriverDied(Exception):
    """SIGKILL, as far as one process can have it."""


class OrderedEngine:
    """Runs jobs here, in whatever order and with whatever mishaps `draw` comes to."""

    def __init__(self, draw: Callable[[int], int], width: int) -> None:
        self._draw = draw
        self._width = width
        self.begun: Counter[str] = Counter()

    def __enter__(self) -> OrderedEngine:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def machines(self) -> tuple[Machine, ...]:
        return ()

    def run(self, jobs: Iterable[Job], heard: Callable[[JobProgress], None]) -> Iterator[Finished]:
        waiting, running = iter(jobs), list[Job]()
        past: list[Finished] = []
        while True:
            while len(running) < self._width and (job := next(waiting, None)) is not None:
                self.begun[job.name] += 1
                running.append(job)
            heard(JobProgress(done=len(past), running=tuple((job.name, "") for job in running)))
            if not running:
                return
            mishap = self._draw(12)
            if mishap == 0:
                raise DriverDied
            if mishap == 1 and past:
                yield past[self._draw(len(past))]  # A node that was thought lost answers late.
                continue
            job = running.pop(self._draw(len(running)))
            state = "cancelled" if mishap == 2 else "ok" if mishap > 4 else "crashed"
            finished = Finished(JobResult(name=job.name, state=state), b"zip" * (mishap % 2))
            past.append(finished)
            yield finished


class FailingPlace(StorePlace):
    """A store whose writes fail now and then, for good or after they took effect."""

    def __init__(self, url: str, draw: Callable[[int], int]) -> None:
        super().__init__(url, waits_s=())
        self._draw = draw

    def write(self, name: str, data: bytes, *, tries: int | None = None) -> None:
        mishap = self._draw(20)
        if mishap == 0:
            raise ToolError("out of reach")
        super().write(name, data, tries=tries)
        if mishap == 1:
            raise DriverDied


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), count=st.integers(0, 12), width=st.integers(1, 4))
def test_every_job_has_one_result(data: st.DataObject, count: int, width: int) -> None:
    def draw(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    jobs = [Job(name=f"job {number}", task="m:f") for number in range(count)]
    url = f"memory://{uuid.uuid4().hex}"
    plan = plan_of(jobs, {})
    recorded: Counter[str] = Counter()
    for attempt in range(200):
        # Mishaps end at some time; until then each start is another driver's.
        chance = draw if attempt < 30 else lambda below: below - 1
        place = FailingPlace(url, chance)
        engine = OrderedEngine(chance, width)
        before = Store(url).names()
        try:
            with Store(url, place=place) as store:
                store.begin(plan, resume=True)
                for result in run_jobs(jobs, engine, store, lambda progress: None):
                    if result.state != "cancelled":
                        recorded[result.name] += 1
                        assert result.name in store.names()
        except (DriverDied, ToolError):
            pass
        assert not before & set(engine.begun), "a finished job was run again"
        assert before <= Store(url).names()
        if len(Store(url).names()) == count:
            break
    assert {each.name for each in Store(url).results()} == {job.name for job in jobs}
    assert all(times == 1 for times in recorded.values())


def test_progress_counts_what_the_store_had() -> None:
    jobs = [Job(name=str(number), task="m:f") for number in range(5)]
    heard: list[JobProgress] = []
    with Store(f"memory://{uuid.uuid4().hex}") as store:
        store.begin(plan_of(jobs, {}))
        store.put(Finished(JobResult(name="0", state="ok")))
        store.put(Finished(JobResult(name="3", state="failed")))
        engine = OrderedEngine(lambda below: below - 1, 1)
        found = [result.name for result in run_jobs(jobs, engine, store, heard.append)]
    assert found == ["1", "2", "4"]
    assert [(each.done, len(each.running), each.queued) for each in heard] == [
        (2, 1, 2),
        (3, 1, 1),
        (4, 1, 0),
        (5, 0, 0),
    ]


def test_two_jobs_of_one_name_are_said() -> None:
    jobs = (Job(name="a", task="m:f") for _ in range(2))
    with Store(f"memory://{uuid.uuid4().hex}") as store:
        engine = OrderedEngine(lambda below: below - 1, 1)
        with pytest.raises(ToolError, match="Two jobs are named a"):
            list(run_jobs(jobs, engine, store, lambda progress: None))
