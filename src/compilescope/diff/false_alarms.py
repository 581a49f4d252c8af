"""Differences that prove nothing: random numbers, races, undefined casts. And whose fault they are.

A difference stays a failure unless one of these explains it. Each explanation is tried, not taken
for granted: by another seed, by more runs, by the other answer that C++ allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from compilescope.diff.runs.sides import ComparedSide, saturated, widened
from compilescope.diff.runs.trial import TrialOutcome, TrialPlan
from compilescope.diff.values import Comparer, ValueDiff
from compilescope.tensors.distances import is_same_value, largest_distance, relative_distance
from compilescope.tensors.structure import MISSING
from compilescope.torchapi.trials.survey import Survey

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
