"""What localising gives: the guilty operations, and how sure that is."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal

Stage = Literal["forward", "backward"]


@dataclass(frozen=True)
class Place:
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
class Guilty:
    """One operation that the backend gets wrong."""

    node: str
    target: str
    file: str | None
    line: int | None
    stage: Stage
    """`backward`: its results are right, the gradients that go back through it are not."""
    graph: int = 0
    function: str = ""
    source: str = ""
    module: str = ""
    alone: bool = True
    """A graph of this operation alone shows it, fed with the values that it had in the program."""
    region: tuple[Place, ...] = ()
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

    @property
    def place(self) -> Place:
        return Place(
            self.node, self.target, self.file, self.line, self.function, self.source, self.module
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {key: _plain(value) for key, value in dataclasses.asdict(self).items()}


@dataclass(frozen=True)
class Localization:
    """The answer."""

    guilty: tuple[Guilty, ...] = ()
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
