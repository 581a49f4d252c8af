"""The result of localizing a difference: the operations that are wrong, and how certain that is."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from compilescope.instrument.torchapi.trials.reruns import from_here
from compilescope.measure.tensors.tolerances import is_dense

Stage = Literal["forward", "backward"]


@dataclass(frozen=True)
class NodePlace:
    """A node of a graph, and the user's line that it comes from."""

    node: str
    target: str
    file: str | None = None
    line: int | None = None
    function: str = ""
    source: str = ""
    """The text of the line."""
    module: str = ""
    """The module that it was called in, as `model.get_submodule` names it."""


@dataclass(frozen=True)
class ValueRange:
    """What an operation was given."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    least: float | None = None
    """Among finite numbers; None where there is none."""
    largest: float | None = None
    nans: int = 0
    infinities: int = 0


@dataclass(frozen=True)
class GuiltyOperation:
    """One operation that the backend gets wrong."""

    node: str
    target: str
    file: str | None
    line: int | None
    stage: Stage
    """`backward`: its results are right, the gradients that go back through it are not."""
    graph: int = 0
    """Of the graphs that were recorded, in the order of their compilation."""
    compile_id: str = ""
    """Of that graph, as Dynamo numbers it."""
    frame: str = ""
    """The function that it was made of; `forward (from line 14)` after a graph break."""
    symbolic: bool = False
    """Some size of the graph is a symbol."""
    input: int = 1
    """The set of inputs on which it is wrong."""
    function: str = ""
    source: str = ""
    module: str = ""
    alone: bool = True
    """A graph of this operation alone shows it, fed with the values that it had in the program."""
    region: tuple[NodePlace, ...] = ()
    """Where it is not shown alone: the fewest operations in a row that show it. Empty where it
    takes the whole graph."""
    wrong: str = ""
    """Which of its results or gradients, in words."""
    reason: str = ""
    input_ranges: tuple[ValueRange, ...] = ()
    error_before: float | None = None
    """The largest difference from the reference among its inputs, as the backend computes them,
    relative to the largest number. None: not measured."""
    error_after: float | None = None
    """The same for its results (or gradients), from the reference's own inputs."""
    aten: tuple[str, ...] = ()
    """The ATen operators that it is made of, in that stage."""
    aten_node: str | None = None
    """The one among them that alone is wrong, where the backend takes ATen graphs."""
    pass_name: str | None = None
    """Which pass is responsible; for Inductor a lowering or a setting may be."""
    attribution: str = ""
    """How that was found, or why it wasn't."""
    trials: int = 0
    """Compilations that it took, beside those of the search."""
    kernel: str | None = None
    """For Inductor: the code that it makes for the operation."""

    def words(self) -> str:
        """`aten.gelu (gelu_3) at model.py:12, stage forward, graph 2/0 of forward (from line 10),
        pass cse`."""
        place = f" at {from_here(self.file)}:{self.line}" if self.file else ""
        stage = f", stage {self.stage}" if self.stage else ""
        name = f" ({self.node})" if self.node else ""
        guilty_pass = f", pass {self.pass_name}" if self.pass_name else ""
        return f"{self.target}{name}{place}{stage}{self._graph_words()}{guilty_pass}"

    def _graph_words(self) -> str:
        """Which graph, where there may be doubt: after a graph break, or compiled again."""
        if not self.compile_id or (not self.graph and self.input == 1 and not self.symbolic):
            return ""
        frame = f" of {self.frame}" if self.frame else ""
        sizes = ", symbolic sizes" if self.symbolic else ""
        on_input = f", on input {self.input}" if self.input > 1 else ""
        return f", graph {self.compile_id}{frame}{sizes}{on_input}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {key: _plain(value) for key, value in dataclasses.asdict(self).items()}


@dataclass(frozen=True)
class Localization:
    """The answer."""

    guilty: tuple[GuiltyOperation, ...] = ()
    compiles: int = 0
    """How often the backend was called, the first calls for the whole graphs included."""
    reason: str = ""
    nodes: int = 0
    """Calls in all graphs."""
    graphs: int = 0
    budget: int = 0
    """What so many guilty operations in so many nodes may take."""
    notes: tuple[str, ...] = field(default=())
    """What could not be told, and why."""

    def to_dict(self) -> dict[str, Any]:
        return {key: _plain(value) for key, value in dataclasses.asdict(self).items()}


def budget_for(nodes: int, guilty: int, graphs: int = 1) -> int:
    """Compilations: 2 log2(n) + 8 for one operation in one graph.

    Each further operation is a search of its own, and each further graph is compiled once whole.
    """
    steps = 2 * math.log2(max(nodes, 2))
    return math.floor(max(guilty, 1) * (steps + 3) + 5) + max(graphs, 1) - 1


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def range_of(name: str, value: Any) -> ValueRange | None:
    """None for what is no tensor."""
    if not isinstance(value, torch.Tensor):
        return None
    dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    if not is_dense(value) or not value.numel():
        return ValueRange(name, dtype, shape)
    numbers = value.detach().abs() if value.is_complex() else value.detach()
    nans = infinities = 0
    if numbers.is_floating_point():
        nans, infinities = int(numbers.isnan().sum()), int(numbers.isinf().sum())
        if nans or infinities:
            numbers = numbers[numbers.isfinite()]
    if not numbers.numel():
        return ValueRange(name, dtype, shape, None, None, nans, infinities)
    wide = numbers.to(torch.float64) if numbers.is_floating_point() else numbers.to(torch.int64)
    return ValueRange(name, dtype, shape, float(wide.min()), float(wide.max()), nans, infinities)
