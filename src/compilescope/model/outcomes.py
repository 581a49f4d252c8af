"""Bodies of what was found or measured rather than seen: devices, numbers, repros."""

from typing import Literal

import msgspec

from compilescope.model.body import EventBody, GraphStage


class Violation(EventBody, frozen=True):
    """Something in a graph that a device cannot run. The event's stack ends at the user's line."""

    rule: str
    """The constraint."""
    device: str
    op: str
    found: str
    allowed: str
    severity: Literal["error", "warning", "unknown"] = "error"
    """`unknown`: the constraint could not tell."""
    remedy: str = ""
    stage: GraphStage = "dynamo"
    model: str = ""
    node: str = ""
    """The graph's node."""


class WorstValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element of a tensor. Values are text: they may be complex, or not finite."""

    index: tuple[int, ...]
    reference: str
    test: str
    error: str


class ErrorGrid(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in a tensor the errors lie: rows are all dimensions but the last, columns the last."""

    lines: tuple[str, ...]
    """A digit a cell: 0 no error, 1 to 8 from `low` to `high` in even steps of the logarithm,
    9 not finite on one side."""
    low: float
    high: float
    row_size: int
    """Rows of the tensor that the lines share."""
    column_size: int
    histogram: tuple[tuple[int, int], ...] = ()
    """(n, count): so many errors from 10**n up to 10**(n + 1)."""
    zeros: int = 0
    """Elements without an error."""


class ErrorProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst places along one dimension."""

    dimension: int
    size: int
    worst: tuple[tuple[int, int, float, int], ...]
    """First place, places, largest error, elements outside the tolerance; worst first."""
    entries: int = 0
    """With an error above half of the largest."""


class TensorDiff(EventBody, frozen=True):
    """One value of the reference held against the same value under test."""

    path: str
    """Where in the result it lies: `output['logits'][0]`, `grad of encoder.weight`."""
    verdict: Literal["pass", "fail", "unknown"]
    reason: str = ""
    model: str = ""
    reference: str = "eager"
    test: str = ""
    """The backend under test."""
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    """Finite ones only."""
    guilty: str = ""
    """The operation at which they part, where it was looked for."""
    role: Literal["output", "change", "gradient", "step", "structure"] = "output"
    """`change`: what the call wrote into an argument or the model's state; `step`: after a step of
    the optimizer; `structure`: a container."""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    worst: tuple[WorstValue, ...] = ()
    """Largest error first."""
    errors: ErrorGrid | None = None
    profiles: tuple[ErrorProfile, ...] = ()
    """One for each dimension."""
    input: str = ""
    """Of several sets of inputs the one that it comes from, and what Dynamo compiled for it."""


class ReproWritten(EventBody, frozen=True):
    """What became of the repro of a failed compilation, a violation, or a graph break in a log."""

    because: str
    """Id of the event that it shows."""
    path: str = ""
    """The script: within the run's folder, or the whole path of one elsewhere; empty where there
    is none."""
    reason: str = ""
    """Why there is none, or why it could not be verified."""
    ops: int | None = None
    """Operations in the script's graph."""
    ops_before: int | None = None
    """Operations in the graph that failed."""


class Measurement(EventBody, frozen=True):
    """A figure, and how it was obtained."""

    name: str
    """What was measured, with its unit: `step_ms`, `compile_s`."""
    value: float
    subject: str = ""
    """The model or program."""
    variant: str = ""
    """What distinguishes it from others of the same name and subject: a backend, a mode."""
    spread: float | None = None
    """Half the distance between the quartiles, or what `how` says."""
    samples: int | None = None
    how: str = ""
