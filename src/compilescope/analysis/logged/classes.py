"""The reasons for which a graph in a log was compiled, and what to do about each."""

from __future__ import annotations

from typing import Literal

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
