"""Records the graphs that Dynamo makes of a program, with the values that each was called with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule

from compilescope.torchapi.bisecting.ambient import Ambient
from compilescope.torchapi.bisecting.copies import copy_values, is_tensor

_MOST_CALLS = 8
_LIMITS = (
    "recompile_limit",
    "cache_size_limit",
    "accumulated_recompile_limit",
    "accumulated_cache_size_limit",
)
_PLENTY = 1 << 16


@dataclass
class RecordedCall:
    """One call of a graph."""

    inputs: list[Any]
    ambient: Ambient
    cotangents: dict[int, torch.Tensor] = field(default_factory=dict)
    """Which of the results -> the gradient that came back to it in the backward pass."""


@dataclass
class RecordedGraph:
    """A graph as Dynamo handed it over; nobody has changed it since."""

    number: int
    module: GraphModule
    calls: list[RecordedCall] = field(default_factory=list)
    calls_seen: int = 0
    """Of them the first few are kept."""

    @property
    def size(self) -> int:
        """Its nodes, without inputs and the output."""
        return sum(node.op.startswith("call_") for node in self.module.graph.nodes)


class GraphRecorder:
    """A backend that keeps what it is given, and runs it by the reference."""

    def __init__(self, reference: Callable[..., Any] | None = None) -> None:
        self.graphs: list[RecordedGraph] = []
        self._reference = reference
        self._parameters: dict[tuple[int, int], Any] = {}

    def __call__(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        recorded = RecordedGraph(len(self.graphs), copy_module(module))
        self.graphs.append(recorded)
        run = module.forward
        if self._reference is not None:
            run = self._reference(module, list(inputs))

        def record_and_run(*values: Any) -> Any:
            recorded.calls_seen += 1
            if len(recorded.calls) >= _MOST_CALLS:
                return run(*values)
            call = RecordedCall(self._copies(values), Ambient.now())
            recorded.calls.append(call)
            results = run(*values)
            _note_cotangents(results, call)
            return results

        return record_and_run

    def _copies(self, values: Sequence[Any]) -> list[Any]:
        """Weights are the same in most calls: one copy serves them all."""
        loose: dict[int, Any] = {}
        for number, value in enumerate(values):
            if not isinstance(value, torch.nn.Parameter):
                loose[number] = value
        copies = dict(zip(loose, copy_values(list(loose.values())), strict=True))
        for number, value in enumerate(values):
            if number in loose:
                continue
            key = (id(value), value._version)
            if key not in self._parameters:
                # The weight is held too: its id may not be used again.
                self._parameters[key] = (value, *copy_values([value]))
            copies[number] = self._parameters[key][1]
        return [copies[number] for number in range(len(values))]


def _note_cotangents(results: Any, call: RecordedCall) -> None:
    for number, result in enumerate(results if isinstance(results, (tuple, list)) else (results,)):
        if not is_tensor(result) or result.grad_fn is None:
            continue

        def note(gradient: torch.Tensor, number: int = number) -> None:
            call.cotangents[number] = gradient.detach().clone()

        result.register_hook(note)


def copy_module(module: GraphModule) -> GraphModule:
    """A graph of its own over the same weights: a backend may change what it is given."""
    graph = Graph()
    result = graph.graph_copy(module.graph, {}, return_output_node=True)
    if result is not None:
        value, old = result
        new = graph.output(value)
        new.meta = dict(old.meta)
    return GraphModule(module, graph, type(module).__name__)


def graph_of_module(module: GraphModule, inputs: Sequence[Any]) -> RecordedGraph:
    """A graph that the user has already, as if it were called now."""
    call = RecordedCall(copy_values(inputs), Ambient.now())
    return RecordedGraph(0, copy_module(module), [call], 1)


@contextlib.contextmanager
def everything_recorded() -> Iterator[None]:
    """A program that was compiled often already would run eagerly, and nothing be recorded."""
    from torch._dynamo import config

    names = [name for name in _LIMITS if hasattr(config, name)]
    # Older names are aliases of newer ones: one of each is enough.
    newer = [name for name in names if "recompile" in name]
    wanted: dict[str, Any] = dict.fromkeys(newer or names, _PLENTY)
    if hasattr(config, "specialize_float"):
        # Backends on AOTAutograd have Dynamo start again with floats as constants (2.13).
        wanted["specialize_float"] = True
    with config.patch(**wanted):
        yield
