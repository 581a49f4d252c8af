"""Bodies of what a structured trace (TORCH_TRACE) tells beside what a live capture sees."""

from typing import Literal

import msgspec

from compilescope.model.body import EventBody

ShapeAction = Literal["created", "unbacked", "guarded", "specialized", "assumed"]
"""A symbol was made for a size; one that no input gives; a condition on sizes was guarded; a symbol
became a constant; a real value was taken for one that only exists at run time."""


class SymbolicShape(EventBody, frozen=True):
    """What Dynamo did about a size that may change. The event's stack is the user's."""

    action: ShapeAction
    symbol: str = ""
    expression: str = ""
    value: str = ""
    sources: tuple[str, ...] = ()
    """What has that size, as Dynamo writes it."""
    reason: str = ""


class TraceRecords(EventBody, frozen=True):
    """Records of a trace that are kept as they are, with their texts; the event names them all."""

    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """How many of each."""
    artifact: str | None = None
    """Artifact: a JSON line for each record, which names the artifact of its text."""
