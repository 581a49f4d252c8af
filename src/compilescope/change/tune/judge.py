"""The verdict of a trial, and of a tuned script: by the clock, and by the numbers of its first
steps.

It runs by itself, in a fresh process, by turns with the original.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.change.repair.trials.version import Version
from compilescope.change.tune.measurement import Meter
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import (
    NOT_COMPILED,
    ONCE,
    TOO_FEW,
    OtherProgram,
    TuneResult,
    TuneTrial,
    in_words,
)
from compilescope.change.tune.step_place import RETURNED
from compilescope.change.tune.step_process import WORTH, StepFailed
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.intervals import ratio
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.body import Verdict
from compilescope.record.fix_search import FixCheck

_FAR = 0.05
"""Relative: results of float64 that are farther from the original's are of another computation,
for instance with other random numbers. Chosen: rounding in bfloat16 stays well below it."""
_SAME = 1e-9
"""Float64 of two ranks that computed the same differs by less. Chosen: many roundings of it."""
_ON_RANK = " on rank "
_LOWER = 0.1
"""Relative: how far a candidate of lower precision may be off. Chosen: bfloat16 has 2 to 3 digits,
and the first steps of training double what it loses."""
_FEW = 64
"""Numbers. Of fewer, such as a loss, the original's may be right by luck, and show too little of
what rounding does: then the step's other tensors show it. Chosen, as pools of `numbers.md`."""
_NEAR = 2.0
"""Times what rounding usually does to the step's tensors. Chosen, as for the root mean square of
many elements."""
_NOISY = 1.1
"""high / low of an interval around 1 that says nothing. Chosen: a tenth would be worth having."""
_QUICKER = 1.2
"""Times that compiling must get quicker for what is meant for that. Chosen."""
_NOT_SLOWER = 0.95
"""Such a candidate may make the step slower by so much. Chosen."""


class NumbersJudge:
    """Knows what the original computes, and what it would without rounding."""

    def __init__(self, meter: Meter, options: TuneOptions) -> None:
        self._meter = meter
        self._options = options
        self._reference: dict[str, Any] = {}
        self._exact: dict[str, Any] | None = None
        self._truth = "float64"
        """What `_exact` is of."""
        self.is_anchored = False
        self._apart = False
        """Numbers are compared in processes of their own: the steps draw random numbers, which
        compiled code draws in its own way, or leave no result in a variable. There they draw as
        eager mode does, and what compiled calls return is kept."""

    def anchor(self) -> None:
        """The original has settled: its numbers and those of float64 are known from now on."""
        self.is_anchored = True
        folder = self._meter.new_folder("exact", empty=True)
        self._options.progress("the original's numbers, in float64", 0, 0)
        with self._meter.first_steps(Version(), folder, way="float64") as exactly:
            self._meter.settle_base()  # At the same time.
            self._reference = _read_steps(self._meter.original)
            with contextlib.suppress(StepFailed):
                if exactly.hear("kept") is not None:
                    self._exact = _read_steps(folder) or None
        if self._fits(self._exact):
            return
        self._apart = True
        self._reference = self._kept([(Version(), None)])[0]
        if self._fits(self._exact):
            return
        # In float64 some kernels draw other random numbers, or none is there. Eager mode in the
        # program's own precision rounds as often, in another order.
        folder = self._meter.new_folder("eager", empty=True)
        self._exact, self._truth = None, "eager mode"
        with (
            self._meter.first_steps(Version(), folder, way="eager") as eagerly,
            contextlib.suppress(StepFailed),
        ):
            if eagerly.hear("kept") is not None:
                # As wide as float64, or it is not taken for more precise than what it judges.
                self._exact = {
                    path: tensor.double() if tensor.is_floating_point() else tensor
                    for path, tensor in _read_steps(folder).items()
                } or None
        if not self._fits(self._exact):
            self._exact = None  # The usual tolerances decide.

    def _fits(self, exact: dict[str, Any] | None) -> bool:
        """Is it the original's computation, and is there something computed?"""
        return (
            exact is not None
            and not is_other_computation(self._reference, exact)
            and any(
                _is_computed(path, known, exact[path])
                for path, known in self._reference.items()
                if path in exact
            )
        )

    @property
    def knows_float64(self) -> bool:
        return self._exact is not None and self._truth == "float64"

    @property
    def teller(self) -> str:
        """What tells rounding from errors where float64 does not."""
        return "tolerances tell" if self._exact is None else f"{self._truth} shows"

    def _kept(
        self, versions: Sequence[tuple[Version, OtherProgram | None]]
    ) -> list[dict[str, Any]]:
        meter = self._meter
        folders = [meter.new_folder("numbers") for _ in versions]
        with contextlib.ExitStack() as opened:
            for process in [
                opened.enter_context(meter.first_steps(version, folder, program=program))
                for (version, program), folder in zip(versions, folders, strict=True)
            ]:
                with contextlib.suppress(StepFailed):
                    process.hear("kept")
        return [_read_steps(folder) for folder in folders]

    def judge(self, trials: Sequence[TuneTrial]) -> None:
        """Processes of their own, if it takes some, run at the same time."""
        kept = self._kept([(t.version, t.program) for t in trials]) if self._apart else None
        for number, trial in enumerate(trials):
            test = kept[number] if kept is not None else _read_steps(trial.folder)
            found = self._judged(test, lower_precision=trial.lower_precision)
            trial.numbers, trial.numbers_reason = found.verdict, found.reason

    def judge_itself(self) -> NumbersVerdict:
        """What a version gets that computes what the original does: whether numbers can tell."""
        return self._judged(self._reference)

    def _judged(self, test: dict[str, Any], *, lower_precision: bool = False) -> NumbersVerdict:
        return judge_numbers(
            self._reference,
            test,
            self._exact,
            truth=self._truth,
            lower_precision=lower_precision,
        )

    def judge_loaded(self, trial: TuneTrial) -> None:
        """Of what has not run in turns: a start with empty caches, up to its steps. Code that was
        saved draws random numbers as the original's compiled code does, not as eager mode."""
        with contextlib.suppress(StepFailed):
            self._meter.cold_start(trial.version, trial.folder)
        found = judge_numbers(
            _read_steps(self._meter.original),
            _read_steps(trial.folder),
            None if self._apart else self._exact,
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
    found, own, base = trial.compile_ratio, trial.compile_s, trial.base_compile_s
    if trial.verdict == "rejected" or found is None or own is None or base is None:
        return
    words = f"compiling takes {own:.1f} s instead of {base:.1f} s at a start with empty caches"
    words = f"{words}: {in_words(found)}"
    if trial.artifact_bytes is not None:
        words += f"; the file it loads has {trial.artifact_bytes / 1e6:.2g} MB"
    if found.low is None or found.high is None:
        trial.say("unverified", f"{words}; started too seldom before the search ended")
    elif found.low > 1 and found.value >= _QUICKER:
        trial.say("apart", words)
    elif found.high < _QUICKER:
        trial.say("rejected", words)
    else:
        trial.say("unverified", f"the measurement is too noisy: {words}")


def judge_loaded_numbers(trial: TuneTrial, judge: NumbersJudge) -> None:
    """Where code that is loaded does not compute what the original does, it says so."""
    judge.judge_loaded(trial)
    if trial.numbers == "pass":
        return
    failed = trial.numbers == "fail"
    words = "its numbers are not the original's" if failed else "its numbers cannot be told"
    trial.say("rejected" if failed else "unverified", f"{words}: {trial.numbers_reason}")


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


# Are a version's numbers those of the original? Both are held to float64, step by step.


class NumbersVerdict(NamedTuple):
    """What became of the comparison."""

    verdict: Verdict
    reason: str


def _read_steps(folder: Path) -> dict[str, Any]:
    """By step and path. What a child wrote is read, never run."""
    import torch

    found: dict[str, Any] = {}
    for file in sorted([*folder.glob("step-*.pt"), *folder.glob("rank-*/step-*.pt")]):
        kept = torch.load(file, weights_only=True, map_location="cpu")
        _, of_rank, rank = file.parent.name.rpartition("rank-")
        where = f"{_ON_RANK}{rank}" if of_rank and file.parent != folder else ""
        found |= {f"step {file.stem[5:]}: {path}{where}": each for path, each in kept.items()}
    return found


def is_other_computation(reference: dict[str, Any], exact: dict[str, Any]) -> bool:
    """Does float64 compute something else altogether?"""
    return _are_apart(reference, exact) or any(
        apart is not None and apart > _FAR for _, apart in _distances(reference, exact, "step 1:")
    )


def _are_apart(reference: dict[str, Any], exact: dict[str, Any]) -> bool:
    """Do ranks that have the same have something else in float64? Then they do not work together
    there: gradients, say, are not averaged."""
    for path, _, wide in _pairs(reference, exact):
        name, on_rank, rank = path.rpartition(_ON_RANK)
        first = f"{name}{_ON_RANK}0"
        if not on_rank or rank == "0" or first not in reference or first not in exact:
            continue
        if wide.is_floating_point() and reference[path].equal(reference[first]):
            other = exact[first].double()
            if wide.shape != other.shape or not wide.double().allclose(other, _SAME, _SAME):
                return True
    return False


def judge_numbers(
    reference: dict[str, Any],
    test: dict[str, Any],
    exact: dict[str, Any] | None,
    *,
    truth: str = "float64",
    lower_precision: bool = False,
) -> NumbersVerdict:
    if lower_precision:
        return _judge_lower(reference, test)
    from compilescope.measure.tensors.comparison import compare_tensors

    computed, worst = 0, NumbersVerdict("pass", "")
    levels = _rounding_levels(reference, exact) if exact is not None else {}
    for path, known, found in _pairs(reference, test):
        without_rounding = exact.get(path) if exact is not None else None
        if without_rounding is not None and without_rounding.shape != known.shape:
            without_rounding = None
        if _is_computed(path, known, without_rounding):
            computed += 1
        if known.dtype == found.dtype and known.equal(found):
            continue
        compared = compare_tensors(known, found, path, exact=without_rounding)
        if (
            compared.verdict != "pass"
            and known.numel() < _FEW
            and known.is_floating_point()
            and known.dtype == found.dtype
            and _is_near(found, without_rounding, levels.get(path.partition(":")[0]))
        ):
            continue
        if compared.verdict == "fail":
            return NumbersVerdict("fail", f"{path}: {compared.reason}")
        if compared.verdict == "unknown" and worst.verdict == "pass":
            worst = NumbersVerdict("unknown", f"{path}: {compared.reason}")
    if not computed:
        reason = "no variable holds a result of the step when it ends"
        return NumbersVerdict("unknown", reason)
    if worst.verdict == "unknown":
        return worst
    how = f"as near to {truth} as the original's" if exact is not None else "as near as rounding is"
    return NumbersVerdict("pass", f"{computed} tensors are {how}")


def _rounding_levels(reference: dict[str, Any], exact: dict[str, Any]) -> dict[str, float]:
    """What rounding usually does to a tensor of the original's, by step, relative to its size."""
    found: dict[str, list[float]] = {}
    for path, known, truth in _pairs(reference, exact):
        if known.is_floating_point() and known.shape == truth.shape and known.numel() >= _FEW:
            apart = _relative_distance(truth, known)
            if apart:  # Else it is not computed.
                found.setdefault(path.partition(":")[0], []).append(apart)
    return {step: statistics.median(every) for step, every in found.items()}


def _is_near(found: Any, truth: Any, level: float | None) -> bool:
    if truth is None or level is None or found.shape != truth.shape or not truth.any():
        return False  # Of nothing but zeros there is no size to be near by.
    apart = _relative_distance(truth, found)
    return apart is not None and apart <= _NEAR * level


def _judge_lower(reference: dict[str, Any], test: dict[str, Any]) -> NumbersVerdict:
    """How far the first step is off; the second has an optimizer's step in it, which may turn the
    smallest gradient into a whole step."""
    worst, at, count = 0.0, "", 0
    for path, apart in _distances(reference, test, "step 1:"):
        if apart is None:
            return NumbersVerdict("fail", f"{path}: it is not finite, or of another shape")
        count += 1
        if apart > worst:
            worst, at = apart, path
    if not count:
        return NumbersVerdict("unknown", "no variable holds a result of the step when it ends")
    words = f"{at} is off by {worst:.2g} of its size" if at else "all are the same"
    return NumbersVerdict("pass" if worst <= _LOWER else "fail", words)


def _is_computed(path: str, known: Any, truth: Any) -> bool:
    """Inputs and weights that stay are what they are in float64 too."""
    if truth is None or RETURNED in path:
        return bool(known.is_floating_point())
    return bool(known.is_floating_point() and not known.double().equal(truth.double()))


def _pairs(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for path, tensor in one.items():
        if path in other:
            yield path, tensor, other[path]


def _distances(
    one: dict[str, Any], other: dict[str, Any], step: str
) -> Iterator[tuple[str, float | None]]:
    """Of what may be rounded, but for gradients: training makes noise of the smallest."""
    for path, a, b in _pairs(one, other):
        if not path.startswith(step) or not a.is_floating_point() or "gradient of" in path:
            continue
        yield path, _relative_distance(a, b)


def _relative_distance(a: Any, b: Any) -> float | None:
    """Of `b` from `a`, in sizes of `a`; None where they cannot be compared."""
    if a.shape != b.shape or not b.isfinite().all():
        return None
    size = float(a.double().norm())
    return float((a.double() - b.double()).norm()) / size if size else 0.0


def measure_script(
    script: Target, file: Path, original: Target, result: TuneResult, options: TuneOptions
) -> tuple[FixCheck, ...]:
    """`file` is the script's own."""
    first = result.first
    if first is None:
        return _unknown("its step is not known")
    if first.place.file != result.main:
        return _unknown("the step is not in the script's own file")
    place = msgspec.structs.replace(first.place, file=str(file.absolute()))
    options = replace(options, caches=None, deadline=options.deadline or Deadline())
    with ExitStack() as opened:
        ours = opened.enter_context(options.workbench(script))
        meter = Meter(opened.enter_context(options.workbench(original)), options, first)
        opened.callback(meter.close)
        folder = meter.new_folder("script")
        trial = TuneTrial(result.kept, Version(), folder, program=OtherProgram(ours, place))
        try:
            judge = NumbersJudge(meter, options)
            meter.start([trial])
            judge.anchor()
            meter.measure([trial], "measuring the script")
            judge_first([trial], judge)
        except OutOfTime:
            return _unknown("the time budget ended before the script was measured")
        except (StepFailed, Refused) as failure:
            return _unknown(f"the script could not be measured: {failure}")
        return tuple(_checks(trial))


def _checks(trial: TuneTrial) -> Iterator[FixCheck]:
    found = trial.ratio
    if found is None or found.low is None or found.high is None:
        failed = trial.verdict == "rejected"
        yield FixCheck("speed", "fail" if failed else "unknown", trial.reason)
        return
    if found.low > 1:
        yield FixCheck("speed", "pass", in_words(found))
        yield FixCheck("step", trial.numbers or "unknown", trial.numbers_reason)
    else:
        slower = found.high < 1
        words = f"its step is not faster than the original's: {in_words(found)}"
        yield FixCheck("speed", "fail" if slower else "unknown", words)


def _unknown(words: str) -> tuple[FixCheck, ...]:
    return (FixCheck("speed", "unknown", words),)
