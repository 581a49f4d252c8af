"""One graph that a log tells of, and why it was compiled: the classes of graphs, in words."""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.model.logged import ModuleStage
from compilescope.model.stack import Frame

GraphClass = Literal[
    "region",
    "graph-break",
    "override-echo",
    "recompile",
    "cpu-fallback",
    "probe",
    "eager",
    "sync",
    "backward",
    "failed",
    "unknown",
]

MEANINGS: dict[GraphClass, str] = {
    "region": "the one graph that a compiled function needs",
    "graph-break": "the rest of a function after a graph break",
    "override-echo": "an operator that runs alone after a break, through the plugin's override",
    "recompile": "the same code again, for other shapes or values",
    "cpu-fallback": "part of a graph that operators without a lowering split up",
    "probe": "the bridge testing whether an operator has a lowering",
    "eager": "operators outside compiled code, or a value read on the host",
    "sync": "an explicit sync or mark_step",
    "backward": "the backward half of a compiled function",
    "failed": "a compilation that failed",
    "unknown": "the log doesn't say",
}
"""In the order in which a reader wants them."""

REMEDIES: dict[GraphClass, str] = {
    "graph-break": "Remove the break; the breaks below say how.",
    "override-echo": "Goes away with the break that caused it.",
    "recompile": "Keep shapes and values fixed: pad, or mark what varies as dynamic.",
    "cpu-fallback": "Replace the operators that have no lowering, or move them out of the model.",
    "probe": "Goes away with the operators that have no lowering.",
    "eager": "Move the operators into the compiled function; read values only after the last step.",
    "sync": "One sync per step is enough; the compiled function needs none inside.",
    "failed": "See the error; nothing after it can be trusted.",
}


class Reason(msgspec.Struct, frozen=True):
    """Why a graph exists."""

    kind: GraphClass
    words: str = ""
    """What of the log says so."""
    because: str | None = None
    """Id of the event that led to it: a graph break, most of the time."""


class LoggedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph in the log."""

    event: str
    name: str
    """What the log calls it: a module's name, a hash, a compile id."""
    rank: int
    kind: GraphClass
    words: str
    because: str | None
    stages: tuple[ModuleStage, ...]
    ops: int | None
    place: Frame | None
    """The line of the program that most of it came from, or that asked for it."""
    through: tuple[Frame, ...] = ()
    """Helpers and libraries between that line and torch_xla."""
    error: str = ""
    failed_stage: str = ""
    cut: str = ""
