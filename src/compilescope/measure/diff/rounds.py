"""One set of inputs: both sides run on it, and every difference is weighed.

A difference stays a failure unless something explains that it proves nothing: random numbers,
races, undefined casts. Each explanation is tried, not taken for granted: by another seed, by more
runs, by the other answer that C++ allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.trials.backends import Compile
from compilescope.instrument.torchapi.trials.reruns import Survey
from compilescope.measure.diff.input_sets import InputSet
from compilescope.measure.diff.runs.sides import ComparedSide, believed, saturated, survey, widened
from compilescope.measure.diff.runs.trial import TrialOutcome, TrialPlan, describe_failure
from compilescope.measure.diff.values import Comparer, ValueDiff
from compilescope.measure.tensors.structure import MISSING, tensors_of
from compilescope.measure.tensors.tolerances import (
    ComparisonConfig,
    is_same_value,
    largest_distance,
    relative_distance,
)
from compilescope.record.body import Verdict

_OTHER_SEED = 20_011
"""Any that a program is not likely to set itself."""
_MORE_RUNS = 3
"""Beside the first two: five show how far equal runs are apart, and each costs a run. Chosen."""
_SURE = 1e-11
"""A relative distance that no result in float64 has which went through float32 (its unit is 1e-7);
cancellation in float64 may reach it, and is told apart by `_GROWTH`."""
_GROWTH = 1e4
"""Times the answer to the smallest change. Other ways to write a computation in float64 stay below
1, the same one in float32 is above 5e7 (benchmarks/rounding_limits.py): this is in the middle."""
_LATER = 4.0
"""What comes after a step of an optimizer, or in a second call, may move so much farther: the
rounding of the step and of another call comes on top. A margin; not measured."""
_UNSURE = 4.0
"""Times the reference's answer to one unit in the last place. Other ways to write a computation in
float32 reach 2.2, mistakes begin at 34 (benchmarks/rounding_limits.py)."""
_MOVES = (
    "the reference itself changes as much when its inputs and weights change by one unit in "
    "the last place"
)
_BEYOND = 4.0
"""Times the distance of equal runs: an error that large is not explained by it. Chosen, not
measured: five runs seldom show the whole spread."""


class FalseAlarms:
    """Looks at each difference of one comparison again."""

    def __init__(
        self,
        plan: TrialPlan,
        comparer: Comparer,
        sides: tuple[ComparedSide, ComparedSide],
        outcomes: tuple[list[TrialOutcome], list[TrialOutcome]],
        exact: TrialOutcome | None,
        seen: Survey | None,
    ) -> None:
        self._plan = plan
        self._comparer = comparer
        self._reference, self._test = sides
        self._references, self._tests = outcomes
        self._exact = exact
        self._seen = seen
        self._own_unsteady, self._unsteady = unsteady(self._references), unsteady(self._tests)
        self._saturated: TrialOutcome | None = None
        self._nudged: TrialOutcome | None = None
        """In float64, by a unit of float64."""
        self._moved: TrialOutcome | None = None
        """The reference, by a unit of its own."""
        self._reseeded: tuple[TrialOutcome, TrialOutcome] | None = None

    @property
    def draws(self) -> bool:
        """Did the reference draw random numbers?"""
        return self._references[0].randomness != self._plan.randomness

    def weigh(self, diff: ValueDiff) -> ValueDiff:
        """The same with the verdict that holds after all."""
        reason = self._own_unsteadiness(diff)
        if reason:
            return diff.judged("unknown", reason)
        if diff.path in self._unsteady:
            diff = self._weigh_unsteady(diff)
            if diff.verdict != "pass":
                return diff
        if diff.verdict == "pass" and self._is_narrowed(diff):
            words = (
                "its errors are float32-sized, and the float64 reference is more accurate than that"
            )
            return diff.judged("fail", f"{words}; {diff.reason}")
        # What has another type, shape or place is no matter of rounding, race or chance.
        if diff.verdict == "pass" or not diff.metrics:
            return diff
        for explanation in (self._randomness, self._undefined):
            reason = explanation(diff)
            if reason:
                return diff.judged("unknown", reason)
        growth = self._amplified(diff)
        if growth <= 1:
            return diff.judged("pass", f"{_MOVES}; {diff.reason}")
        if growth <= _UNSURE and diff.verdict == "fail":
            return diff.judged("unknown", f"{_MOVES}, or nearly so; {diff.reason}")
        if self._is_constant(diff):
            words = "the reference depends on the random numbers, the test does not"
            return diff.judged("fail", f"{words}; {diff.reason}")
        return diff

    def _weigh_unsteady(self, diff: ValueDiff) -> ValueDiff:
        """The test's answers to equal inputs differ."""
        each = [self._against_reference(diff, test) for test in self._tests]
        if all(other.verdict == "pass" for other in each):
            return each[0]
        while len(self._tests) < 2 + _MORE_RUNS:
            again = self._test.run(self._plan)
            if again.error is not None:
                break
            self._tests.append(again)
        leaves = [leaf_of(test, diff.path) for test in self._tests]
        apart = max(largest_distance(a, b) for a in leaves for b in leaves)
        wanted = leaf_of(self._references[0], diff.path)
        least = min(largest_distance(leaf, wanted) for leaf in leaves)
        if least > _BEYOND * apart:
            words = f"wrong in all {len(leaves)} runs, by {least:.3g} or more"
            return diff.judged(
                "fail", f"{words}, though the runs differ by {apart:.3g} among themselves"
            )
        words = f"{len(leaves)} runs of the test on equal inputs differ by up to {apart:.3g}"
        return diff.judged(
            "unknown", f"{words}: a data race, uninitialized memory, or internal state"
        )

    def _against_reference(self, diff: ValueDiff, test: TrialOutcome) -> ValueDiff:
        path = diff.path
        return self._comparer.compare_leaves(
            path,
            diff.kind,
            leaf_of(self._references[0], path),
            leaf_of(test, path),
            leaf_of(self._exact, path, None),
        )

    def _is_narrowed(self, diff: ValueDiff) -> bool:
        """Is a float64 result off by what no run in float64 would be?

        Nothing finer exists to hold it against but the program's own answer in float64 to the
        smallest change of its inputs.
        """
        numbers = diff.numbers
        if numbers is None or numbers.dtype != "float64" or not diff.metrics.get("differing"):
            return False
        wanted = leaf_of(self._references[0], diff.path)
        apart = relative_distance(wanted, leaf_of(self._tests[0], diff.path)) or 0.0
        if apart < _SURE or self._comparer.is_given(torch.float64):
            return False
        if self._nudged is None and self._seen is not None:
            self._nudged, _, _ = widened(self._plan, self._seen, nudged=True)
        moved = relative_distance(wanted, leaf_of(self._nudged, diff.path))
        return moved is not None and apart > _GROWTH * moved

    def _amplified(self, diff: ValueDiff) -> float:
        """How far off it is, by what rounding alone does to the reference; infinite if not known.

        An optimizer may divide a gradient by its own size: one that is rounding alone becomes a
        whole step. A unit of a narrow dtype is large, though, and hides errors: there this is only
        asked for what comes after such a step.
        """
        later = diff.kind in ("step", "change") or diff.path.startswith("call ")
        wide = diff.numbers is not None and diff.numbers.dtype in ("float32", "float64")
        if diff.metrics.get("disagreeing") or not (later or wide or diff.verdict == "unknown"):
            return math.inf
        if self._moved is None:
            self._moved = self._reference.run(self._plan, nudged=True)
        wanted = leaf_of(self._references[0], diff.path)
        apart = relative_distance(wanted, leaf_of(self._tests[0], diff.path))
        moved = relative_distance(wanted, leaf_of(self._moved, diff.path))
        if not apart or not moved:
            return math.inf
        return apart / moved / (_LATER if later else 1.0)

    def _own_unsteadiness(self, diff: ValueDiff) -> str:
        if diff.path not in self._own_unsteady:
            return ""
        one, *others = (leaf_of(outcome, diff.path) for outcome in self._references)
        for other in others:
            found = self._comparer.compare_leaves(diff.path, diff.kind, one, other)
            if found.verdict != "pass":
                return f"the reference's own results for equal inputs differ: {found.reason}"
        return ""

    def _randomness(self, diff: ValueDiff) -> str:
        if not self._draws_otherwise(diff) or self._is_constant(diff):
            return ""
        if self._seen is None:
            return "it depends on random numbers, and the test draws different ones"
        names = [seen.words() for seen in self._seen.random] or ["Python's or numpy's generator"]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return f"it depends on random numbers from {shown}, and the test draws different ones"

    def _draws_otherwise(self, diff: ValueDiff) -> bool:
        """Does it hang on random numbers that the two sides did not draw alike?"""
        reference, test = self._references[0], self._tests[0]
        if not self.draws or test.randomness == reference.randomness:
            return False
        ours, _ = self._with_other_seed()
        return not _same(leaf_of(reference, diff.path), leaf_of(ours, diff.path))

    def _is_constant(self, diff: ValueDiff) -> bool:
        """Does the test give the same whatever is drawn, where the reference does not?"""
        if not self._draws_otherwise(diff):
            return False
        _, theirs = self._with_other_seed()
        return _same(leaf_of(self._tests[0], diff.path), leaf_of(theirs, diff.path))

    def _with_other_seed(self) -> tuple[TrialOutcome, TrialOutcome]:
        if self._reseeded is None:
            sides = (self._reference, self._test)
            one, other = (side.run(self._plan, seed=_OTHER_SEED) for side in sides)
            self._reseeded = one, other
        return self._reseeded

    def _undefined(self, diff: ValueDiff) -> str:
        if self._seen is None or not self._seen.overflowing or not self._reference.eager:
            return ""
        if self._saturated is None:
            self._saturated = saturated(self._plan)
        other = leaf_of(self._saturated, diff.path)
        if _same(other, leaf_of(self._references[0], diff.path)):
            return ""
        names = ", ".join(seen.words() for seen in self._seen.overflowing[:3])
        words = f"it depends on a cast of numbers that the integer type cannot hold: {names}"
        words += "; the result is undefined (eager mode wraps on most machines)"
        found = self._comparer.compare_leaves(
            diff.path, diff.kind, other, leaf_of(self._tests[0], diff.path)
        )
        if found.verdict == "pass":
            words += "; the test saturates and is otherwise right"
        return words


def unsteady(outcomes: Sequence[TrialOutcome]) -> set[str]:
    """Paths at which equal runs gave different answers."""
    first, *others = outcomes
    return {
        path
        for path in first.values
        for other in others
        if not _same(leaf_of(first, path), leaf_of(other, path))
    }


def leaf_of(outcome: TrialOutcome | None, path: str, default: Any = MISSING) -> Any:
    value = outcome.values.get(path) if outcome is not None else None
    return default if value is None else value.leaf


def _same(one: Any, other: Any) -> bool:
    """What cannot be asked is no reason for doubt."""
    return is_same_value(one, other, unclear=True)


Tick = Callable[[str], None]
_BY_TRACING = (
    'the backend is right: backend="eager" differs in the same way, so Dynamo\'s tracing '
    "takes a different path through the program"
)


@dataclass
class Round:
    """What came of one set of inputs."""

    plan: TrialPlan | None = None
    """What was run; None where the inputs were left out."""
    number: int = 1
    words: str = ""
    """What sets the inputs apart from the first."""
    compiles: tuple[Compile, ...] = ()
    """What Dynamo compiled for the test."""
    diffs: list[ValueDiff] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    anchored: bool = False
    """Both sides were held against a float64 run."""
    traced: bool = False
    """What differs does so with backend="eager" too: Dynamo's doing, not the backend's."""
    error: BaseException | None = None
    """What the test raised."""
    reference_seconds: float = 0.0
    test_seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        verdicts = {diff.verdict for diff in self.diffs}
        if "fail" in verdicts:
            return "fail"
        return "unknown" if "unknown" in verdicts or not verdicts else "pass"

    @property
    def inputs(self) -> InputSet:
        skipped = self.plan is None
        return InputSet(self.number, self.words, self.verdict, self.compiles, skipped)

    @property
    def label(self) -> str:
        """Before the names of its values; those of the first set have none."""
        return f"{self.inputs.label}: " if self.number > 1 else ""


class Rounds:
    """Runs rounds with the same two sides."""

    def __init__(
        self,
        sides: tuple[ComparedSide, ComparedSide],
        traced: Callable[[], ComparedSide],
        config: ComparisonConfig,
        *,
        runs: int,
        fp64: bool,
        keep: bool,
        tick: Tick,
    ) -> None:
        """`keep` the values that are compared, for pictures."""
        self._reference, self._test = sides
        self._traced = traced
        self._config = config
        self._runs = runs
        self._fp64 = fp64
        self._keep = keep
        self._tick = tick

    def run(self, plan: TrialPlan, number: int = 1, words: str = "") -> Round:
        found = Round(plan, number, words)
        references, seen = self._references(plan, found)
        found.reference_seconds = references[-1].seconds
        exact = self._exact(plan, seen, references[0], found)
        before = len(self._test.compiles)
        tests = self._tests(plan, found)
        found.compiles = tuple(self._test.compiles[before:])
        comparer = Comparer(self._scaled(seen), plan.before, _narrowest(plan), keep=self._keep)
        if found.error is not None:
            found.diffs = [self._failure(plan, found)]
            return found
        found.test_seconds = tests[-1].seconds
        sides = (self._reference, self._test)
        alarms = FalseAlarms(plan, comparer, sides, (references, tests), exact, seen)
        diffs = [alarms.weigh(diff) for diff in comparer.compare(references[0], tests[0], exact)]
        self._note_unsteady(tests, "test", found)
        found.diffs = self._blame(plan, comparer, (references[0], tests[0], exact), diffs, found)
        return found

    def _references(
        self, plan: TrialPlan, found: Round
    ) -> tuple[list[TrialOutcome], Survey | None]:
        self._tick("running the reference")
        first = self._reference.run(plan)
        if first.error is not None and plan.input_gradients:
            # An input that is written into may not require a gradient.
            plan.input_gradients = False
            found.notes.append("input gradients were not compared: the model writes to its inputs")
            first = self._reference.run(plan)
        if isinstance(first.error, ToolError):
            raise first.error
        if first.error is not None:
            raise ToolError(f"The reference fails: {describe_failure(first.error, marked=False)}")
        if first.wrote_state and not plan.train and plan.calls == 1:
            plan.calls = 2
            first = self._reference.run(plan)
        outcomes = [first]
        seen: Survey | None = None
        if self._reference.eager:
            self._tick("recording the reference's operators")
            watched, seen = survey(plan)
            if watched.error is not None:
                seen = None
                found.notes.append(
                    "the reference's operators could not be recorded: "
                    f"{describe_failure(watched.error)}"
                )
            elif not unsteady([first, watched]):
                return [first, watched], seen
        # A watched run may take another path through torch: only plain ones tell of races.
        outcomes += [self._reference.run(plan) for _ in range(max(self._runs - 1, 1))]
        self._note_unsteady(outcomes, "reference", found)
        return outcomes, seen

    def _exact(
        self, plan: TrialPlan, seen: Survey | None, reference: TrialOutcome, found: Round
    ) -> TrialOutcome | None:
        if not self._fp64:
            return None
        self._tick("running in float64")
        exact: TrialOutcome | None = None
        notes: list[str] = []
        if seen is None:
            reason = "only eager code runs in float64"
            if self._reference.eager:
                reason = "the reference's operators could not be recorded"
        else:
            exact, reason, notes = widened(plan, seen)
        found.notes += notes
        found.anchored = exact is not None
        if exact is None:
            found.notes.append(f"no float64 run, so compared by tolerance: {reason}")
            return None
        exact, doubted = believed(reference, exact, lambda: self._reference.run(plan, nudged=True))
        if doubted:
            shown = ", ".join(doubted[:3]) + (" and others" if len(doubted) > 3 else "")
            found.notes.append(
                f"the float64 run gives a different result for {shown}, so it is not used there"
            )
        return exact

    def _tests(self, plan: TrialPlan, found: Round) -> list[TrialOutcome]:
        outcomes: list[TrialOutcome] = []
        backend = self._test.backend
        for number in range(self._runs):
            self._tick(f"running the test, {number + 1} of {self._runs}")
            outcomes.append(self._test.run(plan))
            found.error = outcomes[-1].error or (backend.error if backend is not None else None)
            if found.error is not None:
                break
        return outcomes

    def _failure(self, plan: TrialPlan, found: Round) -> ValueDiff:
        assert found.error is not None
        words = f"the test raised {describe_failure(found.error)}"
        backend = self._test.backend
        if backend is not None and backend.error is None:
            self._tick("tracing without a backend")
            other = self._traced().run(plan)
            if other.error is not None:
                found.traced = True
                words += '; it also raises with backend="eager": Dynamo cannot trace the program'
        return ValueDiff("output", "output", "fail", words)

    def _blame(
        self,
        plan: TrialPlan,
        comparer: Comparer,
        outcomes: tuple[TrialOutcome, TrialOutcome, TrialOutcome | None],
        diffs: list[ValueDiff],
        found: Round,
    ) -> list[ValueDiff]:
        """Tells what tracing changes from what the backend does."""
        if self._test.backend is None or not any(diff.verdict == "fail" for diff in diffs):
            return diffs
        self._tick("tracing without a backend")
        traced = self._traced().run(plan)
        if traced.error is not None:
            return diffs
        reference, test, exact = outcomes
        before = {d.path: d for d in comparer.compare(reference, traced, exact)}
        after = {d.path: d for d in comparer.compare(traced, test, exact)}
        judged = [_blamed(diff, before, after) for diff in diffs]
        wrong = [diff for diff in judged if diff.verdict == "fail"]
        found.traced = all(diff.reason.startswith(_BY_TRACING) for diff in wrong)
        return judged

    def _note_unsteady(self, outcomes: list[TrialOutcome], name: str, found: Round) -> None:
        paths = sorted(unsteady(outcomes))
        if paths:
            shown = ", ".join(paths[:3]) + (" and others" if len(paths) > 3 else "")
            found.notes.append(f"repeated runs of the {name} are not bitwise equal: {shown}")

    def _scaled(self, seen: Survey | None) -> ComparisonConfig:
        """Tolerances grow with the longest sum of the model, where nobody set it."""
        if seen is None or self._config.reduction is not None or seen.reduction < 2:
            return self._config
        return dataclasses.replace(self._config, reduction=seen.reduction)


def _blamed(
    diff: ValueDiff, before: dict[str, ValueDiff], after: dict[str, ValueDiff]
) -> ValueDiff:
    by_tracing = diff.path in before and before[diff.path].verdict == "fail"
    agrees = diff.path not in after or after[diff.path].verdict == "pass"
    if diff.verdict == "fail" and by_tracing and agrees:
        return diff.judged("fail", f"{_BY_TRACING}; {diff.reason}")
    return diff


def _narrowest(plan: TrialPlan) -> torch.dtype:
    """The least precise numbers among weights and arguments."""
    tensors = [*plan.state.reachable.tensors.values(), *tensors_of(plan.arguments.args)]
    tensors += tensors_of(plan.arguments.kwargs)
    dtypes = {t.dtype for t in tensors if t.is_floating_point()} | {torch.float32}
    return max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)
