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
    guilty: str = ""
    """The operation at which they part, where it was looked for."""


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
