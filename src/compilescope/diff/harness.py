"""Runs a model on two sides and says whether they compute the same.

harness = KernelDiffHarness(model, (x,), test_backend="inductor")
report = harness.compare()
print(report.summary())
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from compilescope.diff.config import ComparisonConfig
from compilescope.diff.copies import Arguments
from compilescope.diff.generation import variants
from compilescope.diff.localize import localize as find_guilty
from compilescope.diff.modes import Randomness, same_world
from compilescope.diff.pictures import VisualizationConfig, draw_pictures
from compilescope.diff.report import DiffReport
from compilescope.diff.rounds import Round, Rounds
from compilescope.diff.sides import EAGER, Side
from compilescope.diff.state import State
from compilescope.diff.summing import sum_up
from compilescope.diff.training import find_optimizer
from compilescope.diff.trial import Plan
from compilescope.errors import ToolError
from compilescope.torchapi.trials.backends import uncompiled

Backend = str | Callable[..., Any]
REPORTS = "compilescope-reports"


class KernelDiffHarness:
    """Compares a model under a test backend with the same model on a reference.

    `reference_backend="eager"` is plain Python without torch.compile. `example_inputs` is one
    tensor, a tuple or list of arguments, or a dict of keyword arguments.
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
        inputs: int = 1,
        runs: int = 2,
        seed: int = 0,
        fp64: bool = True,
        options: dict[str, Any] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """`loss` makes a number of the output; `optimizer` is a name of torch.optim, a class or a
        function of the parameters. `inputs` asks for more sets of inputs, `runs` for runs on each.
        `options` go to torch.compile."""
        if not callable(model):
            raise ToolError(f"The model is not callable (its type is {type(model).__name__}).")
        if config is not None and comparison_config is not None:
            raise ToolError(
                "Give config or comparison_config, not both: they are the same setting."
            )
        for name, value in (("inputs", inputs), ("runs", runs)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ToolError(f"{name} is {value!r}; it must be a whole number of at least 1.")
        self.model = uncompiled(model)
        self.args, self.kwargs = _arguments(example_inputs, kwargs)
        self.model_name = model_name or _name(self.model)
        self.reference_backend = reference_backend
        self.test_backend = test_backend
        self.config = config or comparison_config or ComparisonConfig()
        self.visualization_config = visualization_config
        self.train = train
        self.loss = loss
        self.optimizer = find_optimizer(optimizer)
        self.inputs = inputs
        self.runs = runs
        self.seed = seed
        self.fp64 = fp64
        self.options = dict(options or {})
        self._tick = progress or (lambda doing: None)

    def compare(
        self,
        generate_visualizations: bool = False,
        save_report: bool = False,
        report_dir: str = REPORTS,
        *,
        localize: bool = False,
        train: bool | None = None,
    ) -> DiffReport:
        """Run both sides and compare all that they give."""
        started = time.time()
        train = self.train if train is None else train
        # The backends are looked up first: a wrong name is told before anything runs.
        reference = Side(
            self.model, self.reference_backend, self.options, eager=self.reference_backend == EAGER
        )
        test = Side(self.model, self.test_backend, self.options, eager=False)
        with same_world():
            state = State(self.model, (self.args, self.kwargs))
            try:
                rounds = self._rounds(
                    (reference, test), state, train=train, keep=generate_visualizations
                )
                state.restore()
                report = sum_up(self, reference, test, rounds)
                report.timestamp = started
                if localize:
                    self._localize(report, rounds, train)
            finally:
                state.restore()
        report.draw = type(self).draw
        if generate_visualizations:
            self._draw(report, Path(report_dir))
        if save_report:
            report.save_json(Path(report_dir) / f"{_file_name(report)}.json")
        return report

    def _rounds(
        self, sides: tuple[Side, Side], state: State, *, train: bool, keep: bool
    ) -> list[tuple[str, Round]]:
        rounds = Rounds(
            sides,
            lambda: Side(self.model, EAGER, self.options, eager=False),
            self.config,
            runs=self.runs,
            fp64=self.fp64,
            keep=keep,
            tick=self._tick,
        )
        arguments = Arguments(self.args, self.kwargs, state.own)
        randomness = Randomness()

        def plan(arguments: Arguments) -> Plan:
            return Plan(
                model=self.model,
                state=state,
                arguments=arguments,
                randomness=randomness,
                train=train,
                loss=self.loss,
                optimizer=self.optimizer,
                input_gradients=train,
            )

        found = [("", rounds.run(plan(arguments)))]
        if arguments.shared:
            shared = ", ".join(arguments.shared)
            found[0][1].notes.append(f"{shared} cannot be copied: both sides got the same object")
        for number, variant in enumerate(variants(arguments, self.inputs - 1, self.seed), 2):
            label = f"input {number} ({variant.words}): "
            other = Arguments(variant.args, variant.kwargs, state.own)
            try:
                found.append((label, rounds.run(plan(other))))
            except ToolError as error:
                left_out = Round(notes=[f"skipped: {_lowered(error.message)}"])
                found.append((label, left_out))
        return found

    def _localize(self, report: DiffReport, rounds: list[tuple[str, Round]], train: bool) -> None:
        if report.verdict != "fail":
            report.notes += ("nothing to localize: no value clearly differs",)
            return
        wrong = [found for _, found in rounds if any(d.verdict == "fail" for d in found.diffs)]
        if any(found.error is not None for found in wrong):
            report.notes += ("nothing to localize: the test raised before it returned anything",)
            return
        if all(found.traced for found in wrong):
            report.notes += ("nothing to localize: no operation of the backend is wrong",)
            return
        self._tick("localizing")
        first = next(found for found in wrong if not found.traced)
        assert first.arguments is not None  # It has differences, so it was run.
        args, kwargs = first.arguments.copied()
        found = find_guilty(
            self.model,
            args,
            kwargs,
            reference=self.reference_backend,
            test_backend=self.test_backend,
            config=self.config,
            train=train,
        )
        report.guilty = tuple(found.guilty)
        report.compiles += found.compiles
        if found.reason:
            report.notes += (f"localizing: {found.reason}",)

    def _draw(self, report: DiffReport, folder: Path) -> None:
        diffs: list[Any] = list(report.diffs)
        report.visualization_paths = draw_pictures(
            diffs, folder, report.model_name, self.visualization_config
        )


def _arguments(
    example_inputs: Any, kwargs: dict[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    named = dict(kwargs or {})
    # A ModelOutput and the like are dicts too, but they are one argument.
    if type(example_inputs) is dict:
        return (), {**example_inputs, **named}
    if isinstance(example_inputs, list) or type(example_inputs) is tuple:
        return tuple(example_inputs), named
    return (example_inputs,), named


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
