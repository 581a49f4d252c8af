"""The mock backend: checks Dynamo's graph against a device that is not there, and runs it eagerly.

Used as it is, `torch.compile(model, backend=mock_backend)`, or configured,
`backend=mock_backend(device="npu-a")`. It never changes what the program computes.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch.fx import GraphModule

from compilescope.backends.checking import CheckedGraph, check_module, tell_captures
from compilescope.backends.mock.configuration import Configuration, configure, configure_by_options
from compilescope.backends.mock.refusal import ConstraintError
from compilescope.backends.mock.wording import warning_text
from compilescope.errors import ToolError
from compilescope.torchapi.compiling.modes import current_contexts
from compilescope.torchapi.compiling.refusals import BackendMisuse

log = logging.getLogger(__package__)


@dataclass(frozen=True)
class Judged:
    """Graphs that were checked, and what a repro of what is wrong with them is made of."""

    module: GraphModule
    checked: tuple[CheckedGraph, ...]
    configuration: Configuration
    backend: str
    """The name of the backend in `compilescope`."""
    contexts: tuple[str, ...] = ()
    """The modes it was compiled in, as context managers."""


@dataclass(frozen=True)
class Repro:
    """What became of a repro."""

    words: str
    """For the end of the error's message."""
    path: str | None = None


Reproduce = Callable[[Judged], Repro]


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
        configuration = self._configuration_now(options or {})
        checked = check_module(
            module, configuration.constraints, inputs=inputs, device=configuration.name
        )
        graphs = Judged(module, (checked,), configuration, self.__name__, current_contexts())
        judge(graphs, self._reproduce, inspect.currentframe())
        return module.forward  # type: ignore[no-any-return]

    def _configuration_now(self, options: dict[str, Any]) -> Configuration:
        if self.configuration is not None and not options:
            return self.configuration
        try:
            return configure_by_options(options)
        except ToolError as error:
            raise BackendMisuse(error, self.__name__, inspect.currentframe()) from None

    def __repr__(self) -> str:
        given = self.configuration
        return f"<{self.__name__} for {given.name}>" if given else f"<{self.__name__}>"


def judge(graphs: Judged, reproduce: Reproduce | None, frame: FrameType | None) -> None:
    """Tell whoever captures; then raise in strict mode, or log."""
    for checked in graphs.checked:
        tell_captures(checked)
    if graphs.configuration.strict and any(checked.errors for checked in graphs.checked):
        made = Repro("")
        if reproduce is not None and graphs.configuration.repro is not False:
            made = reproduce(graphs)
        raise ConstraintError(
            graphs.checked,
            backend=graphs.backend,
            repro=made.words,
            repro_path=made.path,
            frame=frame,
        )
    for checked in graphs.checked:
        if checked.found:
            log.warning("%s", warning_text(checked))
