"""One set of inputs: both sides run on it, and every difference is weighed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from compilescope.diff.false_alarms import FalseAlarms, unsteady
from compilescope.diff.input_sets import InputSet
from compilescope.diff.runs.failures import describe_failure
from compilescope.diff.runs.sides import ComparedSide, believed, survey, widened
from compilescope.diff.runs.trial import TrialOutcome, TrialPlan
from compilescope.diff.values import Comparer, ValueDiff
from compilescope.errors import ToolError
from compilescope.tensors.rounding import Verdict
from compilescope.tensors.structure import tensors_of
from compilescope.tensors.tolerances import ComparisonConfig
from compilescope.torchapi.trials.compiles import Compile
from compilescope.torchapi.trials.survey import Survey

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
    tensors = [*plan.state.holdings.tensors.values(), *tensors_of(plan.arguments.args)]
    tensors += tensors_of(plan.arguments.kwargs)
    dtypes = {t.dtype for t in tensors if t.is_floating_point()} | {torch.float32}
    return max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)
