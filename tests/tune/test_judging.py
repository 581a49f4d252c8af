"""The verdict of a candidate, by times that are made up and numbers that are told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from compilescope.change.fixes.patch import Patch
from compilescope.change.repair.trials.version import Version
from compilescope.change.tune.candidate import TuneCandidate
from compilescope.change.tune.judge import judge_first, judge_second
from compilescope.change.tune.outcome import NOT_COMPILED, ONCE, TOO_FEW, TuneTrial, warm_prices
from compilescope.record.body import Verdict

BASE = [50.0, 51.0, 50.5, 49.5, 50.0, 50.2, 49.8, 50.1]
QUICK = [each / 2.5 for each in BASE]
SLOW = [each * 1.4 for each in BASE]
ALIKE = [50.1, 50.9, 50.6, 49.4, 50.1, 50.1, 49.9, 50.0]
WILD = [20.0, 90.0, 55.0, 31.0, 70.0, 45.0, 62.0, 38.0]


class Told:
    """Says of all numbers the same, and of which trials it was asked."""

    def __init__(self, verdict: Verdict = "pass") -> None:
        self._verdict = verdict
        self.asked: list[TuneTrial] = []

    def judge(self, trials: Sequence[TuneTrial]) -> None:
        self.asked += trials
        for trial in trials:
            trial.numbers, trial.numbers_reason = self._verdict, "the words"


def _trial(own: list[float], **kind: bool) -> TuneTrial:
    candidate = TuneCandidate(id="x", title="x", price="", propose=lambda _: Patch({}), **kind)
    trial = TuneTrial((candidate,), Version(), Path("none"))
    trial.base_rows, trial.own_rows = [BASE[: len(own)]], [own]
    return trial


def test_what_needs_longer_is_said_to_need_how_long() -> None:
    trial = _trial([])
    trial.say_not_ready(63.4, 40.0)
    assert trial.verdict == "unverified" and trial.needs_s == 63.4
    assert trial.reason.startswith("still compiling after 63 s, at the end of its share of the ")
    trial.say_not_ready(20.0, 85.0)
    assert trial.reason.endswith("it needs about 85 s, as the first run did")
    assert trial.needs_s == 85.0


def test_a_price_that_was_not_measured_alone_is_told_as_far_as_it_is_known() -> None:
    told, measured, nothing = _trial(QUICK), _trial(QUICK), _trial(QUICK)
    told.warm_compile_s = measured.warm_compile_s = 13.4, 11.6
    measured.compile_s = 50.0
    (words,) = warm_prices([told, measured, nothing])
    assert "x took 13 s to compile, the original 12 s" in words


@pytest.mark.parametrize(
    ("own", "verdict", "words"),
    [
        (ALIKE, "rejected", "not faster: 1.00x"),
        (SLOW, "rejected", "not faster: 0.71x (0.71 to 0.71)"),
        (WILD, "unverified", "the measurement is too noisy: "),
        (QUICK[:2], "unverified", TOO_FEW),
    ],
    ids=["alike", "slower", "noisy", "too few"],
)
def test_what_is_not_surely_faster_is_told_without_a_look_at_its_numbers(
    own: list[float], verdict: str, words: str
) -> None:
    trial, judge = _trial(own), Told()
    judge_first([trial], judge)  # type: ignore[arg-type]
    assert (trial.verdict, trial.promising, judge.asked) == (verdict, False, [])
    assert trial.reason.startswith(words)


@pytest.mark.parametrize(
    ("numbers", "verdict", "reason"),
    [
        ("pass", "unverified", ONCE),
        ("fail", "rejected", "faster (2.50x (2.50 to 2.50)), but wrong: the words"),
        ("unknown", "unverified", "its numbers cannot be told: the words"),
    ],
)
def test_what_is_faster_must_be_right(numbers: Verdict, verdict: str, reason: str) -> None:
    trial = _trial(QUICK)
    judge_first([trial], Told(numbers))  # type: ignore[arg-type]
    assert (trial.verdict, trial.reason, trial.numbers) == (verdict, reason, numbers)
    assert trial.promising == (numbers == "pass")


@pytest.mark.parametrize(
    ("own", "numbers", "verdict", "words"),
    [
        (ALIKE, "pass", "unverified", NOT_COMPILED),
        (ALIKE, "fail", "rejected", "its numbers are not the original's: the words"),
        (SLOW, "pass", "rejected", "it makes the step slower: 0.71x at best"),
    ],
)
def test_what_is_meant_for_compile_time_need_not_be_faster(
    own: list[float], numbers: Verdict, verdict: str, words: str
) -> None:
    trial = _trial(own, for_compile_time=True)
    judge_first([trial], Told(numbers))  # type: ignore[arg-type]
    assert (trial.verdict, trial.reason) == (verdict, words)


@pytest.mark.parametrize(
    ("again", "lower", "verdict", "words"),
    [
        (QUICK, False, "verified", "the words"),
        (QUICK, True, "apart", "it changes numbers on purpose: the words"),
        (ALIKE, False, "rejected", "not faster in a second measurement: 1.00x"),
        ([], False, "rejected", "not faster in a second measurement: nothing was measured"),
    ],
    ids=["again", "lower precision", "not again", "nothing"],
)
def test_a_second_measurement_decides_by_itself(
    again: list[float], lower: bool, verdict: str, words: str
) -> None:
    trial = _trial(QUICK, lower_precision=lower)
    judge_first([trial], Told())  # type: ignore[arg-type]
    trial.base_rows.append(BASE[: len(again)])
    trial.own_rows.append(again)
    judge_second(trial)
    assert trial.verdict == verdict and trial.reason.startswith(words)


def test_without_a_second_measurement_it_stays_unverified() -> None:
    trial = _trial(QUICK)
    judge_first([trial], Told())  # type: ignore[arg-type]
    judge_second(trial)
    assert (trial.verdict, trial.reason) == ("unverified", ONCE)


def test_what_was_rejected_stays_so() -> None:
    trial, judge = _trial(QUICK), Told()
    trial.say("rejected", "it failed")
    judge_first([trial], judge)  # type: ignore[arg-type]
    judge_second(trial)
    assert (trial.verdict, trial.reason, judge.asked) == ("rejected", "it failed", [])
