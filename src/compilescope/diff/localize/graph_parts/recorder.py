"""A backend that records the graphs of a program, with the values of each graph's first calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule

from compilescope.diff.runs.modes import CallModes
from compilescope.tensors.copies import copied_values
from compilescope.torchapi.trials.compiles import Compile, note_compile

_MOST_CALLS = 8
"""Of one graph in one run of the program. Chosen: each keeps a copy of its inputs, and a mistake
that first shows in a later call is not found."""


@dataclass
class RecordedCall:
    """One call of a graph."""

    inputs: list[Any]
    ambient: CallModes
    occasion: int = 0
    """Of which run of the program, where it is run several times."""
    cotangents: dict[int, torch.Tensor] = field(default_factory=dict)
    """Which of the results -> the gradient that came back to it in the backward pass."""


@dataclass
class GraphRecord:
    """A graph as Dynamo handed it over; nobody has changed it since."""

    number: int
    module: GraphModule
    calls: list[RecordedCall] = field(default_factory=list)
    calls_seen: int = 0
    """Of them the first few are kept."""
    compile: Compile = field(default_factory=Compile)
    asked: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """Within it a backend is asked about the graph, or a part of it."""

    @property
    def size(self) -> int:
        """Its nodes, without inputs and the output."""
        return sum(node.op.startswith("call_") for node in self.module.graph.nodes)


class GraphRecorder:
    """A backend that keeps what it is given, and runs it by the reference."""

    def __init__(self, reference: Callable[..., Any] | None = None) -> None:
        self.graphs: list[GraphRecord] = []
        self.occasion = 0
        """The run of the program that is under way."""
        self.thorough = True
        """Keep the first few calls of a run; else only the one that a graph was compiled for."""
        self._reference = reference
        self._parameters: dict[tuple[int, int], Any] = {}

    def __call__(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        noted = note_compile(module, inputs)
        recorded = GraphRecord(len(self.graphs), copy_module(module), compile=noted)
        self.graphs.append(recorded)
        run = module.forward
        if self._reference is not None:
            run = self._reference(module, list(inputs))

        def record_and_run(*values: Any) -> Any:
            if recorded.calls and not self.thorough:
                return run(*values)
            recorded.calls_seen += 1
            if sum(call.occasion == self.occasion for call in recorded.calls) >= _MOST_CALLS:
                return run(*values)
            call = RecordedCall(self._copies(values), CallModes.now(), self.occasion)
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
        copies = dict(zip(loose, copied_values(list(loose.values())), strict=True))
        for number, value in enumerate(values):
            if number in loose:
                continue
            key = (id(value), value._version)
            if key not in self._parameters:
                # The weight is held too: its id may not be used again.
                self._parameters[key] = (value, *copied_values([value]))
            copies[number] = self._parameters[key][1]
        return [copies[number] for number in range(len(values))]


def _note_cotangents(results: Any, call: RecordedCall) -> None:
    for number, result in enumerate(results if isinstance(results, (tuple, list)) else (results,)):
        if not isinstance(result, torch.Tensor) or result.grad_fn is None:
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


def graph_of_module(module: GraphModule, inputs: Sequence[Any]) -> GraphRecord:
    """A graph that the user has already, as if it were called now."""
    call = RecordedCall(copied_values(inputs), CallModes.now())
    return GraphRecord(0, copy_module(module), [call], 1)
