"""Bodies of what was found or measured rather than seen: devices, numbers, benchmarks."""

from __future__ import annotations

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


class ReproWritten(EventBody, frozen=True):
    """What became of the repro of a failed compilation, or of a graph break in a log."""

    because: str
    """Id of the event that it shows."""
    path: str = ""
    """The script, within the run's folder; empty where there is none."""
    reason: str = ""
    """Why there is none, or why it could not be verified."""
    ops: int | None = None
    """Operations in the script's graph."""
    ops_before: int | None = None
    """Operations in the graph that failed."""


class FixAttempt(EventBody, frozen=True):
    """One fix that was tried on one cause, and what came of it."""

    fix: str
    """Its id; empty where none fitted."""
    title: str
    verdict: Literal["verified", "rejected", "unverified"]
    because: str = ""
    """Id of an event of the cause; empty where only an earlier fix uncovered it."""
    cause: str = ""
    reason: str = ""
    """Why it is not verified."""
    states: str = ""
    """What a user could see change with it."""
    kept: bool = False
    """It is part of what was handed out."""
    diff: str = ""


class FixLeft(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is lost with all that was kept, too."""

    place: str
    why: str


class FixOutcome(EventBody, frozen=True):
    """What a search for fixes came to: all that was kept, verified together."""

    verdict: Literal["verified", "rejected", "unverified"]
    reason: str = ""
    """Why it is not verified."""
    changes: str = ""
    """Artifact: the files before and after, as a JSON list of FixedFile; empty: none changes."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables that the program must be started with."""
    before: dict[str, int] = msgspec.field(default_factory=dict)
    """What the program loses, by name: `breaks`, `recompiles`, ..."""
    after: dict[str, int] = msgspec.field(default_factory=dict)
    """The same with all that was kept."""
    warm_call: tuple[float, float] | None = None
    """Seconds of a warm call before and after; None where it was not timed."""
    notes: tuple[str, ...] = ()
    left: tuple[FixLeft, ...] = ()


class FixedFile(msgspec.Struct, frozen=True):
    """A file that a fix changes. Whole texts: a diff could be read otherwise than it was meant."""

    path: str
    """Absolute."""
    original: str
    """As it was read, without a byte order mark."""
    fixed: str


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
