"""The reducer, on candidates that are plain lists of numbers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.change.minify.deletion import delete_runs, smallest_number
from compilescope.change.minify.engine import (
    NotInteresting,
    Outcome,
    Pass,
    ReductionLimits,
    ReductionProgress,
    reduce,
)


@dataclass(frozen=True)
class Numbers:
    """A candidate."""

    items: tuple[int, ...]

    def size(self) -> tuple[int, ...]:
        return (len(self.items), *self.items)

    def text(self) -> str:
        return json.dumps(self.items)


Proposing = Generator[Numbers, bool, None]


def _drop(present: Numbers) -> Proposing:
    def without(gone: frozenset[int]) -> Numbers:
        return Numbers(tuple(n for i, n in enumerate(present.items) if i not in gone))

    yield from delete_runs(range(len(present.items)), without)


def _lower(present: Numbers) -> Proposing:
    items = list(present.items)
    for index in range(len(items)):

        def make(number: int, index: int = index) -> Numbers:
            return Numbers((*items[:index], number, *items[index + 1 :]))

        items[index] = yield from smallest_number(items[index], make)


PASSES = [Pass("lower", 20, _lower), Pass("drop", 10, _drop)]


class Judge:
    """Keeps what the test says, and counts how often it was asked, and what about."""

    def __init__(self, keeps: Callable[[tuple[int, ...]], bool]) -> None:
        self.keeps = keeps
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, candidate: Numbers) -> Outcome:
        with self._lock:
            self.asked.append(candidate.text())
        return "kept" if self.keeps(candidate.items) else "lost"


def _has_all(needed: set[int]) -> Callable[[tuple[int, ...]], bool]:
    return lambda items: needed <= set(items)


many = st.lists(st.integers(0, 40), max_size=60)


@given(many, st.sets(st.integers(0, 40), max_size=4), st.integers(1, 5))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_needed_stays_whatever_the_jobs(
    items: list[int], needed: set[int], jobs: int
) -> None:
    start = Numbers(tuple(items) + tuple(sorted(needed)))
    judge = Judge(_has_all(needed))
    done = reduce(start, PASSES, judge, jobs=jobs)
    assert sorted(done.best.items) == sorted(needed)
    assert len(judge.asked) == len(set(judge.asked))  # nothing is asked twice
    assert done.calls <= len(judge.asked)
    assert done.best == reduce(start, PASSES, Judge(_has_all(needed))).best


@given(many, st.integers(0, 200), st.integers(1, 4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_result_is_a_fixed_point(items: list[int], least: int, jobs: int) -> None:
    """Not monotone, and with many least results: the same one each time, and no pass adds to it."""
    start = Numbers((*items, least))

    def keeps(found: tuple[int, ...]) -> bool:
        return (sum(found) >= least and len(found) % 3 != 2) or found == start.items

    done = reduce(start, PASSES, Judge(keeps), jobs=jobs)
    again = reduce(done.best, PASSES, Judge(keeps))
    assert again.best is done.best
    assert done.best.size() <= start.size()


@given(many, st.sets(st.integers(0, 40), max_size=4), st.integers(0, 30), st.integers(1, 3))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_resumed_it_goes_the_same_way_and_asks_nothing_again(
    tmp_path_factory: pytest.TempPathFactory,
    items: list[int],
    needed: set[int],
    calls: int,
    jobs: int,
) -> None:
    state = tmp_path_factory.mktemp("state") / "state.json"
    start = Numbers(tuple(items) + tuple(sorted(needed)))
    whole = Judge(_has_all(needed))
    expected = reduce(start, PASSES, whole)
    first = Judge(_has_all(needed))
    reduce(start, PASSES, first, state=state, limits=ReductionLimits(calls=calls))
    second = Judge(_has_all(needed))
    resumed = reduce(start, PASSES, second, state=state, jobs=jobs)
    assert resumed.best == expected.best
    assert not set(first.asked) & set(second.asked)
    if jobs == 1:
        assert first.asked + second.asked == whole.asked


def test_a_long_list_takes_few_questions() -> None:
    needed = {100, 731}
    judge = Judge(_has_all(needed))
    done = reduce(Numbers(tuple(range(1000))), [Pass("drop", 1, _drop)], judge)
    assert set(done.best.items) == needed
    assert done.calls <= 70


def test_ctrl_c_keeps_the_best_and_the_state(tmp_path: Path) -> None:
    state = tmp_path / "state.json"

    def judge(candidate: Numbers) -> Outcome:
        if len(candidate.items) < 10:
            raise KeyboardInterrupt
        return "kept"

    start = Numbers(tuple(range(100)))
    one_by_one = Pass("one", 1, _one_by_one)
    done = reduce(start, [one_by_one], judge, state=state)
    assert done.interrupted and done.stopped == "interrupt"
    assert len(done.best.items) == 10
    assert json.loads(state.read_text())["best"] == done.best.text()
    rest = reduce(start, [one_by_one], Judge(lambda items: True), state=state)
    assert rest.best.items == () and rest.calls == 10


def _one_by_one(present: Numbers) -> Proposing:
    items = present.items
    while items:
        if not (yield Numbers(items[1:])):
            return
        items = items[1:]


def test_limits_end_it_with_the_best_so_far() -> None:
    start = Numbers(tuple(range(100)))
    done = reduce(
        start,
        [Pass("one", 1, _one_by_one)],
        Judge(lambda _: True),
        limits=ReductionLimits(calls=11),
    )
    assert (done.stopped, done.calls, len(done.best.items)) == ("calls", 11, 90)
    late = reduce(start, PASSES, Judge(lambda _: True), limits=ReductionLimits(time_s=0))
    assert (late.stopped, late.best) == ("time", start)


def test_proposals_that_are_not_smaller_are_refused_unasked() -> None:
    def grow(present: Numbers) -> Proposing:
        assert not (yield Numbers((*present.items, 1)))
        assert not (yield present)

    judge = Judge(lambda _: True)
    done = reduce(Numbers((1,)), [Pass("grow", 1, grow)], judge)
    assert done.best == Numbers((1,)) and len(judge.asked) == 1


def test_crashes_and_hangs_of_candidates_are_refusals() -> None:
    def judge(candidate: Numbers) -> Outcome:
        if 3 not in candidate.items:
            return "crashed" if len(candidate.items) % 2 else "timeout"
        return "kept"

    assert reduce(Numbers(tuple(range(9))), PASSES, judge).best.items == (3,)


@pytest.mark.parametrize("outcome", ["lost", "invalid", "timeout", "crashed"])
def test_a_start_that_shows_nothing_is_an_error_of_one_sentence(
    tmp_path: Path, outcome: Outcome
) -> None:
    state = tmp_path / "state.json"
    with pytest.raises(NotInteresting) as error:
        reduce(Numbers((1,)), PASSES, lambda _: outcome, state=state)
    assert error.value.outcome == outcome and error.value.message.count(".") == 1
    assert not state.exists()


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: "[]", "damaged"),
        (lambda text: text.replace('"kept"', '"lost"'), "damaged"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "another version"),
        (lambda text: "\x00", "damaged"),
        (lambda text: "[" * 100_000, "damaged"),
    ],
)
def test_a_damaged_state_is_refused(
    tmp_path: Path, damage: Callable[[str], str], word: str
) -> None:
    state = tmp_path / "state.json"
    reduce(Numbers((1, 2)), PASSES, Judge(_has_all({2})), state=state)
    state.write_text(damage(state.read_text()))
    with pytest.raises(ToolError, match=word):
        reduce(Numbers((1, 2)), PASSES, Judge(_has_all({2})), state=state)


def test_the_state_of_another_reduction_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    judge = Judge(_has_all({2}))
    reduce(Numbers((1, 2)), PASSES, judge, state=state, purpose="a")
    for start, purpose in ((Numbers((2, 3)), "a"), (Numbers((1, 2)), "b")):
        with pytest.raises(ToolError, match="another program"):
            reduce(start, PASSES, judge, state=state, purpose=purpose)
    with pytest.raises(ToolError, match="Cannot write"):
        reduce(Numbers((1, 2)), PASSES, judge, state=tmp_path / "no" / "state.json")


def test_an_error_of_the_judge_is_not_swallowed() -> None:
    def judge(candidate: Numbers) -> Outcome:
        raise ToolError("No space left.")

    for jobs in (1, 2):
        with pytest.raises(ToolError, match="No space left"):
            reduce(Numbers((1,)), PASSES, judge, jobs=jobs)


def test_progress_tells_every_step() -> None:
    told: list[ReductionProgress] = []
    judge = Judge(_has_all({5}))
    done = reduce(Numbers(tuple(range(30))), PASSES, judge, progress=told.append)
    assert told[0].size == told[0].start_size and told[0].calls == 1
    assert told[-1].size == done.best.size() and told[-1].calls == done.calls
    sizes = [each.size for each in told]
    assert sizes == sorted(sizes, reverse=True)


def test_a_later_stage_waits_for_the_earlier_ones() -> None:
    order: list[str] = []

    def noting(name: str, propose: Callable[[Numbers], Proposing]) -> Callable[..., Proposing]:
        def watched(present: Numbers) -> Proposing:
            order.append(name)
            yield from propose(present)

        return watched

    first, later = Pass("drop", 10, noting("drop", _drop)), Pass("low", 110, noting("low", _lower))
    done = reduce(Numbers((9, 9, 9)), [later, first], Judge(lambda items: sum(items) >= 9))
    assert done.best.items == (9,) and order == ["drop", "drop", "low"]


def test_several_jobs_work_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=280)

    def judge(candidate: Numbers) -> Outcome:
        if len(candidate.items) == 8:
            return "kept"
        together.wait()
        return "lost"

    def three(present: Numbers) -> Proposing:
        for index in range(3):
            yield Numbers((index,))

    assert reduce(Numbers(tuple(range(8))), [Pass("t", 1, three)], judge, jobs=3).calls == 4


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_judge_without_time_ends_it_with_the_best_so_far(jobs: int, tmp_path: Path) -> None:
    asked: list[Numbers] = []

    def judge(candidate: Numbers) -> Outcome:
        asked.append(candidate)
        if len(asked) > 12:
            raise OutOfTime
        return "kept" if 7 in candidate.items else "lost"

    state = tmp_path / "state.json"
    start = Numbers(tuple(range(40)))
    done = reduce(start, PASSES, judge, jobs=jobs, state=state)
    assert done.stopped == "time" and 7 in done.best.items and done.best.size() < start.size()
    # What time ran out on is not remembered as an answer.
    whole = reduce(start, PASSES, Judge(lambda items: 7 in items), state=state)
    assert whole.best.items == (7,)


def test_a_start_without_time_is_nothing_to_hand_out() -> None:
    def judge(candidate: Numbers) -> Outcome:
        raise OutOfTime

    with pytest.raises(OutOfTime):
        reduce(Numbers((1, 2)), PASSES, judge)


def test_a_deadline_that_is_over_ends_it() -> None:
    limits = ReductionLimits(deadline=Deadline(1.0, begun=-1e9))
    done = reduce(Numbers((7, 8, 9)), PASSES, Judge(lambda _: True), limits=limits)
    assert done.stopped == "time" and done.best.items == (7, 8, 9)
