"""The mock backend: checks Dynamo's graph against a device that is not there, and runs it eagerly.

Used as it is, `torch.compile(model, backend=mock_backend)`, or configured,
`backend=mock_backend(device="npu-a")`. It never changes what the program computes.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from torch.fx import GraphModule

from compilescope.backends.checks import (
    CapturedViolation,
    CheckedGraph,
    ConstraintViolation,
    check_module,
    tell_captures,
)
from compilescope.backends.mock.configuration import Configuration, configure, configure_by_options
from compilescope.backends.mock.messages import ConstraintError, say_default, warning_text
from compilescope.base.errors import ToolError
from compilescope.base.settings import read_settings
from compilescope.instrument.torchapi.compilation.current import current_contexts
from compilescope.instrument.torchapi.compilation.refusals import BackendMisuse
from compilescope.record.bodies import ReproWritten

log = logging.getLogger(__package__)


@dataclass(frozen=True)
class CheckedModule:
    """Graphs that were checked, and what a repro of what is wrong with them is made of."""

    module: GraphModule
    checked: tuple[CheckedGraph, ...]
    configuration: Configuration
    backend: str
    """The name of the backend in `compilescope`."""
    contexts: tuple[str, ...] = ()
    """The modes it was compiled in, as context managers."""


@dataclass(frozen=True)
class ReproPart:
    """One script, or why there is none, and the violations that it is of."""

    violations: tuple[ConstraintViolation, ...]
    path: str | None = None
    reason: str = ""
    ops: int | None = None
    """Operations in the script's graph, and in the one that was refused."""
    ops_before: int | None = None


@dataclass(frozen=True)
class MadeRepros:
    """What became of the repros of a graph."""

    words: str
    """For the end of the error's message."""
    path: str | None = None
    """The first script."""
    parts: tuple[ReproPart, ...] = ()
    """All of them: one for each kind of violation."""


Reproduce = Callable[[CheckedModule], MadeRepros]


class MockBackend:
    """Callable by torch as a backend, and by users as its own factory."""

    __name__ = "mock_backend"

    def __init__(
        self, configuration: Configuration | None = None, reproduce: Reproduce | None = None
    ) -> None:
        self.configuration = configuration
        """None: as the environment says when it compiles."""
        self._reproduce = reproduce

    def __call__(self, *graph_and_inputs: Any, **arguments: Any) -> Any:
        if graph_and_inputs:
            if not isinstance(graph_and_inputs[0], GraphModule):
                raise ToolError(
                    (
                        f"{self.__name__} was called with {type(graph_and_inputs[0]).__name__}, "
                        "not a graph."
                    ),
                    hint=f"Write torch.compile(model, backend={self.__name__}), or pass "
                    f'settings by keyword: {self.__name__}(device="npu-a").',
                )
            return self.compile(*graph_and_inputs, **arguments)
        try:
            return self._configured(arguments)
        except TypeError as error:
            raise TypeError(str(error).replace("configure()", f"{self.__name__}()")) from None

    def _configured(self, arguments: dict[str, Any]) -> MockBackend:
        return type(self)(configure(**arguments), self._reproduce)

    def compile(
        self,
        module: GraphModule,
        inputs: Sequence[Any] = (),
        *,
        options: dict[str, Any] | None = None,
        mode: str | None = None,
    ) -> Callable[..., Any]:
        """What torch calls. A `mode` asks for a faster program, and there is none to be had."""
        configuration = self._configuration_said(options or {})
        checked = check_module(
            module, configuration.constraints, inputs=inputs, device=configuration.name
        )
        graphs = CheckedModule(module, (checked,), configuration, self.__name__, current_contexts())
        judge(graphs, self._reproduce, inspect.currentframe())
        return module.forward  # type: ignore[no-any-return]

    def configuration_for(self, options: dict[str, Any]) -> Configuration:
        """What a graph is checked against that torch hands over with these options."""
        return self._configuration_now(options)

    def _configuration_now(self, options: dict[str, Any]) -> Configuration:
        if self.configuration is not None and not options:
            return self.configuration
        try:
            return configure_by_options(options)
        except ToolError as error:
            raise BackendMisuse(error, self.__name__, inspect.currentframe()) from None

    def _configuration_said(self, options: dict[str, Any]) -> Configuration:
        configuration = self._configuration_now(options)
        say_default(configuration, self.__name__)
        return configuration

    def __repr__(self) -> str:
        given = self.configuration
        return f"<{self.__name__} for {given.name}>" if given else f"<{self.__name__}>"


def judge(graphs: CheckedModule, reproduce: Reproduce | None, frame: FrameType | None) -> None:
    """Tell whoever captures; then raise in strict mode, or log."""
    told = [each for checked in graphs.checked for each in tell_captures(checked)]
    if graphs.configuration.strict and any(checked.errors for checked in graphs.checked):
        made = MadeRepros("")
        if reproduce is not None and graphs.configuration.repro is not False:
            made = reproduce(graphs)
            _tell_of_repros(told, made)
        raise ConstraintError(
            graphs.checked,
            backend=graphs.backend,
            repro=made.words,
            repro_path=made.path,
            repro_paths=[part.path for part in made.parts if part.path],
            frame=frame,
        )
    for checked in graphs.checked:
        if checked.found:
            log.warning("%s", warning_text(checked))


def _tell_of_repros(told: Sequence[CapturedViolation], made: MadeRepros) -> None:
    """Whoever has heard of a violation hears where its script is."""
    for part in made.parts:
        path = _within_run(part.path) if part.path else ""
        for each in told:
            if each.violation in part.violations:
                body = ReproWritten(
                    each.event, path, part.reason, ops=part.ops, ops_before=part.ops_before
                )
                each.sink.emit(body)


def _within_run(path: str) -> str:
    """A run may be moved or packed: what lies in its folder is named from there."""
    whole, run = Path(path).absolute(), read_settings().run_dir
    inside = run is not None and whole.is_relative_to(run.absolute())
    return str(whole.relative_to(run.absolute()) if inside and run else whole)
