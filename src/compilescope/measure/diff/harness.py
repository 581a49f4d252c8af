"""Runs a model on two sides and says whether they compute the same.

harness = KernelDiffHarness(model, (x,), test_backend="inductor")
report = harness.compare()
print(report.summary())
"""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from compilescope.base.errors import ToolError
from compilescope.base.objects import call_arguments
from compilescope.instrument.torchapi.trials.backends import find_backend, uncompiled
from compilescope.measure.diff.input_sets import (
    Call,
    built,
    further_sets,
    have_one_shape,
    refuse_failing,
)
from compilescope.measure.diff.localize import Moment, localize_plans
from compilescope.measure.diff.pictures import VisualizationConfig, draw_pictures
from compilescope.measure.diff.report import DiffReport
from compilescope.measure.diff.rounds import Round, Rounds
from compilescope.measure.diff.runs.model_state import BackendState, State
from compilescope.measure.diff.runs.modes import Randomness, same_world
from compilescope.measure.diff.runs.sides import EAGER, ComparedSide
from compilescope.measure.diff.runs.trial import TrialPlan, describe_failure, find_optimizer
from compilescope.measure.diff.values import ValueDiff
from compilescope.measure.tensors.copies import CopiedArguments
from compilescope.measure.tensors.tolerances import ComparisonConfig
from compilescope.record.body import Verdict

Backend = str | Callable[..., Any]
REPORTS = "compilescope-reports"
_ONE_SHAPE = (
    "all given inputs have the same shapes: other sizes, and dynamic shapes, were not tested"
)


class KernelDiffHarness:
    """Compares a model under a test backend with the same model on a reference.

    `reference_backend="eager"` is plain Python without torch.compile. `example_inputs` is one
    tensor, a tuple or list of arguments, or a dict of keyword arguments.

    All sets of inputs go to the same compiled model, one after the other: some bugs need a second
    shape, for which Dynamo recompiles with symbolic sizes.
    """

    draw: ClassVar[Any] = None
    """Draws a record as HTML; the package's front puts it here."""

    def __init__(
        self,
        model: Callable[..., Any],
        example_inputs: Any = (),
        model_name: str | None = None,
        reference_backend: Backend = EAGER,
        test_backend: Backend = "inductor",
        comparison_config: ComparisonConfig | None = None,
        visualization_config: VisualizationConfig | None = None,
        *,
        config: ComparisonConfig | None = None,
        kwargs: dict[str, Any] | None = None,
        train: bool = False,
        loss: Callable[[Any], Any] | None = None,
        optimizer: Any = None,
        inputs: int | Sequence[Any] = 1,
        variants: int = 0,
        runs: int = 2,
        seed: int = 0,
        fp64: bool = True,
        options: dict[str, Any] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """`loss` makes a number of the output; `optimizer` is a name of torch.optim, a class or a
        function of the parameters. `inputs` is a list of further sets, each in a form that
        `example_inputs` may have; or how many sets there are in all, of which all but the first
        are generated. `variants` asks for that many generated sets, `runs` for runs on each set.
        `options` go to torch.compile."""
        if not callable(model):
            raise ToolError(f"The model is not callable (its type is {type(model).__name__}).")
        if config is not None and comparison_config is not None:
            raise ToolError(
                "Give config or comparison_config, not both: they are the same setting."
            )
        self.given: list[Call]
        """Further sets of inputs."""
        self.given, generated = _asked_for(inputs)
        for name, value, least in (("runs", runs, 1), ("variants", variants, 0)):
            _check_whole(name, value, least)
        self.model = uncompiled(model)
        self.args, self.kwargs = call_arguments(example_inputs, kwargs)
        self.model_name = model_name or _name(self.model)
        self.reference_backend = reference_backend
        self.test_backend = test_backend
        self.config = config or comparison_config or ComparisonConfig()
        self.visualization_config = visualization_config
        self.train = train
        self.loss = loss
        self.optimizer = find_optimizer(optimizer)
        self.variants = variants + generated
        self.runs = runs
        self.seed = seed
        self.fp64 = fp64
        self.options = dict(options or {})
        self._tick = progress or (lambda doing: None)

    @classmethod
    def from_build(
        cls, build: Callable[[], Any], inputs: int = 1, *, name: str = "build", **options: Any
    ) -> KernelDiffHarness:
        """Call `build` that many times: each call returns (model, args) or (model, args, kwargs).
        The model of the first call is compared on the inputs of all of them; inputs that a call
        returns again make room for generated ones."""
        _check_whole("inputs", inputs, 1)
        model, sets = built(build, inputs, name)
        args, kwargs = sets[0]
        harness = cls(model, args, kwargs=kwargs, **options)
        harness.given = sets[1:]
        return harness

    def compare(
        self,
        generate_visualizations: bool = False,
        save_report: bool = False,
        report_dir: str = REPORTS,
        *,
        localize: bool = False,
        train: bool | None = None,
    ) -> DiffReport:
        """Run both sides and compare all that they give.

        `save_report` writes the JSON into `report_dir`; `generate_visualizations` pictures too. The
        report's `report_path` and `visualization_paths` say where, and its summary in a line.
        """
        started = time.time()
        train = self.train if train is None else train
        # The backends are looked up first: a wrong name is told before anything runs.
        reference = ComparedSide(
            self.model, self.reference_backend, self.options, eager=self.reference_backend == EAGER
        )
        before = self._remember if localize else None
        test = ComparedSide(self.model, self.test_backend, self.options, eager=False, before=before)
        with same_world():
            state = State(self.model, (self.args, self.kwargs))
            try:
                rounds = self._rounds(
                    (reference, test), state, train=train, keep=generate_visualizations
                )
                state.restore()
                report = _summed_up(self.model_name, reference, test, rounds)
                report.timestamp = started
                if localize:
                    self._localize(report, rounds, test)
            finally:
                state.restore()
        report.draw = type(self).draw
        if generate_visualizations:
            self._draw(report, Path(report_dir))
        if save_report or generate_visualizations:
            report.save_json(Path(report_dir) / f"{_file_name(report)}.json")
        return report

    def _rounds(
        self, sides: tuple[ComparedSide, ComparedSide], state: State, *, train: bool, keep: bool
    ) -> list[Round]:
        rounds = Rounds(
            sides,
            lambda: ComparedSide(self.model, EAGER, self.options, eager=False),
            self.config,
            runs=self.runs,
            fp64=self.fp64,
            keep=keep,
            tick=self._tick,
        )
        arguments = CopiedArguments(self.args, self.kwargs, state.own)
        randomness = Randomness()

        def plan(arguments: CopiedArguments) -> TrialPlan:
            return TrialPlan(
                model=self.model,
                state=state,
                arguments=arguments,
                randomness=randomness,
                train=train,
                loss=self.loss,
                optimizer=self.optimizer,
                input_gradients=train,
            )

        found = [rounds.run(plan(arguments))]
        if arguments.shared:
            shared = ", ".join(arguments.shared)
            found[0].notes.append(f"{shared} cannot be copied: both sides got the same object")
        more = further_sets(arguments, self.given, self.variants, self.seed)
        generated = False
        for number, each in enumerate(more, 2):
            other = CopiedArguments(each.args, each.kwargs, state.own)
            try:
                found.append(rounds.run(plan(other), number, each.words))
            except ToolError as error:
                if not each.generated:
                    raise refuse_failing(error, number) from error
                notes = [f"skipped: {_lowered(error.message)}"]
                found.append(Round(None, number, each.words, notes=notes))
            generated = generated or each.generated
        if not generated and have_one_shape([(self.args, self.kwargs), *self.given]):
            found[0].notes.append(_ONE_SHAPE)
        return found

    def _remember(self) -> BackendState:
        return BackendState(find_backend(self.test_backend))

    def _localize(self, report: DiffReport, rounds: list[Round], test: ComparedSide) -> None:
        if report.verdict != "fail":
            report.notes += ("nothing to localize: no value clearly differs",)
            return
        wrong = [found for found in rounds if found.verdict == "fail"]
        returned = [found for found in wrong if found.error is None]
        first = next((found for found in returned if not found.traced), None)
        if first is None:
            why = "no operation of the backend is wrong"
            if not returned:
                why = "the test raised before it returned anything"
            report.notes += (f"nothing to localize: {why}",)
            return
        self._tick("localizing")
        plans = [found.plan for found in rounds[: first.number]]
        assert test.backend is not None  # It was compiled, or nothing would differ.
        moments = zip(test.backend.compiles, test.backend.kept, strict=True)
        found = localize_plans(
            [plan for plan in plans if plan is not None],
            reference=self.reference_backend,
            test_backend=self.test_backend,
            config=self.config,
            options=self.options,
            moments=[Moment(*each) for each in moments],
        )
        report.guilty = tuple(replace(each, input=first.number) for each in found.guilty)
        report.compiles += found.compiles
        if found.reason:
            report.notes += (f"localizing: {found.reason}",)

    def quick_check(self, atol: float = 1e-5, rtol: float = 1e-4) -> bool:
        """Do all values agree within these tolerances? One run of each side, no report."""
        quick = copy.copy(self)
        quick.config = replace(self.config, atol=atol, rtol=rtol)
        quick.runs, quick.fp64 = 1, False
        return quick.compare().passed

    def _draw(self, report: DiffReport, folder: Path) -> None:
        diffs: list[Any] = list(report.diffs)
        try:
            report.visualization_paths = draw_pictures(
                diffs, folder, report.model_name, self.visualization_config
            )
        except ToolError as error:
            # What was compared is not lost for want of a picture.
            report.notes += (f"no pictures: {_lowered(error.message)} {error.hint}".rstrip(),)


def _asked_for(inputs: Any) -> tuple[list[Call], int]:
    """The sets that were given, and how many are to be generated."""
    if isinstance(inputs, (list, tuple)):
        return [call_arguments(each) for each in inputs], 0
    _check_whole("inputs", inputs, 1)
    return [], inputs - 1


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ToolError(f"{name} is {value!r}; it must be a whole number of at least {least}.")


def _name(model: Any) -> str:
    if inspect.isroutine(model):
        return str(model.__name__)
    inner = getattr(model, "func", model)
    return str(getattr(inner, "__name__", None) or type(model).__name__)


def _file_name(report: DiffReport) -> str:
    words = f"{report.model_name}-{report.test_backend}-{int(report.timestamp * 1000)}"
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in words)


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]


def _summed_up(
    name: str, reference: ComparedSide, test: ComparedSide, rounds: list[Round]
) -> DiffReport:
    """From rounds to one verdict with its reason."""
    diffs = [
        replace(diff, path=f"{found.label}{diff.path}", input=found.number)
        for found in rounds
        for diff in found.diffs
    ]
    compiles = test.backend.calls if test.backend is not None else 0
    verdict, reason = _verdict(diffs, compiles)
    errors = [found.error for found in rounds if found.error is not None]
    ran = [found for found in rounds if found.diffs]
    return DiffReport(
        model_name=name,
        reference_backend=reference.name,
        test_backend=test.name,
        verdict=verdict,
        reason=reason,
        diffs=tuple(diffs),
        compiles=compiles,
        notes=tuple(f"{found.label}{note}" for found in rounds for note in found.notes),
        anchored=bool(ran) and all(found.anchored for found in ran),
        error_message=describe_failure(errors[0]) if errors else "",
        inputs=len(ran),
        input_sets=tuple(found.inputs for found in rounds),
        reference_run_time=rounds[0].reference_seconds,
        test_run_time=rounds[0].test_seconds,
        test_compile_time=test.backend.seconds if test.backend is not None else 0.0,
        reference_compile_time=reference.backend.seconds if reference.backend is not None else 0.0,
    )


def _verdict(diffs: list[ValueDiff], compiles: int) -> tuple[Verdict, str]:
    wrong = [diff for diff in diffs if diff.verdict == "fail"]
    unclear = [diff for diff in diffs if diff.verdict == "unknown"]
    if wrong:
        # What is missing or has another shape explains the rest.
        first = next((diff for diff in wrong if not diff.metrics), wrong[0])
        return "fail", f"{_counted(wrong, diffs)} differ: {first.path}: {first.reason}"
    if not compiles:
        return "unknown", "nothing was compiled, so the test backend was never called"
    if unclear:
        words = f"{unclear[0].path}: {unclear[0].reason}"
        return "unknown", f"{_counted(unclear, diffs)} inconclusive: {words}"
    if not diffs:
        return "unknown", "nothing to compare: the model returns and changes nothing"
    everything = f"all {len(diffs)} values" if len(diffs) > 1 else "the only value"
    if all(diff.metrics.get("differing", 0.0) == 0 for diff in diffs):
        return "pass", f"{everything}: equal"
    if all(_is_anchored(diff) for diff in diffs if diff.metrics.get("differing")):
        return "pass", f"{everything}: equal up to rounding, as a float64 run shows"
    return "pass", f"{everything}: equal within tolerance"


def _is_anchored(diff: ValueDiff) -> bool:
    """Was it held against float64, and not against a tolerance?"""
    judgement = diff.numbers.judgement if diff.numbers is not None else None
    return judgement is not None and judgement.reference_error is not None


def _counted(some: list[ValueDiff], all_of_them: list[ValueDiff]) -> str:
    return f"{len(some)} of {len(all_of_them)} values"
