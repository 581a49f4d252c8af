"""The verdict of a trial: by the clock, and by the numbers of its first steps."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from compilescope.analysis.intervals import ratio
from compilescope.repair.trials.version import Version
from compilescope.tune.measurement import Meter
from compilescope.tune.numbers import is_other_computation, judge_numbers, read_steps
from compilescope.tune.options import TuneOptions
from compilescope.tune.race import WORTH
from compilescope.tune.stepped import StepFailed
from compilescope.tune.trial import NOT_COMPILED, ONCE, TOO_FEW, OtherProgram, TuneTrial, in_words

_NOISY = 1.1
"""high / low of an interval around 1 that says nothing. Chosen: a tenth would be worth having."""
_QUICKER = 1.2
"""Times that compiling must get quicker for what is meant for that. Chosen."""
_NOT_SLOWER = 0.95
"""Such a candidate may make the step slower by so much. Chosen."""


class NumbersJudge:
    """Knows what the original computes, and float64."""

    def __init__(self, meter: Meter, wishes: TuneOptions) -> None:
        self._meter = meter
        self._wishes = wishes
        self._reference: dict[str, Any] = {}
        self._exact: dict[str, Any] | None = None
        self.is_anchored = False
        self._apart = False
        """The steps draw random numbers, which compiled code draws in its own way: numbers are
        compared in processes that draw as eager mode does."""

    def anchor(self) -> None:
        """The original has settled: its numbers and those of float64 are known from now on."""
        self.is_anchored = True
        folder = self._meter.new_folder("exact", empty=True)
        self._wishes.progress("the original's numbers, in float64", 0, 0)
        with self._meter.first_steps(Version(), folder, exact=True) as exactly:
            self._meter.settle_base()  # At the same time.
            self._reference = read_steps(self._meter.original)
            with contextlib.suppress(StepFailed):
                if exactly.hear("kept") is not None:
                    self._exact = read_steps(folder)
        if not self._exact:
            self._exact = None  # The usual tolerances decide.
            return
        if is_other_computation(self._reference, self._exact):
            self._apart = True
            self._reference = self._kept([(Version(), None)])[0]
            if is_other_computation(self._reference, self._exact):
                self._exact = None

    def _kept(
        self, versions: Sequence[tuple[Version, OtherProgram | None]]
    ) -> list[dict[str, Any]]:
        meter = self._meter
        folders = [meter.new_folder("numbers") for _ in versions]
        with contextlib.ExitStack() as opened:
            for process in [
                opened.enter_context(
                    meter.first_steps(version, folder, exact=False, program=program)
                )
                for (version, program), folder in zip(versions, folders, strict=True)
            ]:
                with contextlib.suppress(StepFailed):
                    process.hear("kept")
        return [read_steps(folder) for folder in folders]

    def judge(self, trials: Sequence[TuneTrial]) -> None:
        """Processes of their own, if it takes some, run at the same time."""
        kept = self._kept([(t.version, t.program) for t in trials]) if self._apart else None
        for number, trial in enumerate(trials):
            test = kept[number] if kept is not None else read_steps(trial.folder)
            found = judge_numbers(
                self._reference, test, self._exact, lower_precision=trial.lower_precision
            )
            trial.numbers, trial.numbers_reason = found.verdict, found.reason


def judge_first(trials: Sequence[TuneTrial], judge: NumbersJudge) -> None:
    """After the first measurement."""
    wanted = [trial for trial in trials if _is_worth_more(trial)]
    judge.judge(wanted)
    for trial in wanted:
        _judge_first_numbers(trial)


def _is_worth_more(trial: TuneTrial) -> bool:
    """By the clock, its numbers are worth a look; else it says why not."""
    found = trial.ratio
    if trial.verdict == "rejected" or found is None:
        return False
    if found.low is None or found.high is None:
        trial.say("unverified", TOO_FEW)
        return False
    if trial.for_compile_time:
        slow = found.high < _NOT_SLOWER
        if slow:
            trial.say("rejected", f"it makes the step slower: {found.high:.2f}x at best")
        return not slow
    if found.low <= 1:
        noisy = found.high >= WORTH and found.high / found.low > _NOISY
        words = "the measurement is too noisy" if noisy else "not faster"
        trial.say("unverified" if noisy else "rejected", f"{words}: {in_words(found)}")
    return found.low > 1


def _judge_first_numbers(trial: TuneTrial) -> None:
    found = trial.ratio
    assert found is not None
    if trial.for_compile_time:
        if trial.numbers == "pass":
            trial.say("unverified", NOT_COMPILED)
        else:
            words = f"its numbers are not the original's: {trial.numbers_reason}"
            trial.say("rejected", words)
    elif trial.numbers == "fail":
        trial.say("rejected", f"faster ({in_words(found)}), but wrong: {trial.numbers_reason}")
    elif trial.numbers == "unknown":
        trial.say("unverified", f"its numbers cannot be told: {trial.numbers_reason}")
    else:
        trial.promising = True
        trial.say("unverified", ONCE)


def judge_compile_time(trial: TuneTrial) -> None:
    """Of what is meant for that, once it is measured."""
    own, base = trial.compile_s, trial.base_compile_s
    if own is None or base is None:
        return
    quicker = own * _QUICKER <= base
    words = f"compiling takes {own:.1f} s instead of {base:.1f} s"
    trial.say("apart" if quicker else "rejected", words)


def judge_second(trial: TuneTrial) -> None:
    """Faster in the second measurement by itself, or not offered."""
    if trial.verdict == "rejected":
        return
    if len(trial.own_rows) < 2:
        return
    again = ratio(trial.base_rows[-1:], trial.own_rows[-1:], paired=True)
    if again is None or again.low is None or again.low <= 1:
        words = in_words(again) if again is not None else "nothing was measured"
        trial.say("rejected", f"not faster in a second measurement: {words}")
        return
    if trial.lower_precision:
        trial.say("apart", f"it changes numbers on purpose: {trial.numbers_reason}")
    else:
        trial.say("verified", trial.numbers_reason)
