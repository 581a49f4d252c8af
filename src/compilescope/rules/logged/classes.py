"""The reasons for which a graph gets compiled, and what one does about each."""

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
    "override-echo": "an operator that runs alone, through the plugin's override, after a break",
    "recompile": "the same code again, for other shapes or values",
    "cpu-fallback": "a part of a graph that operators without a lowering cut in pieces",
    "probe": "the bridge trying an operator out to see whether it has a lowering",
    "eager": "operators outside compiled code, or a value read on the host",
    "sync": "an explicit sync or mark_step",
    "backward": "the backward half of a compiled function",
    "failed": "a compilation that did not end well",
    "unknown": "the log does not tell",
}
"""In the order in which a reader wants them."""

REMEDIES: dict[GraphClass, str] = {
    "graph-break": "Remove the break; the breaks below say how.",
    "override-echo": "Goes away with the break that it follows from.",
    "recompile": "Keep shapes and values fixed: pad, or mark what varies as dynamic.",
    "cpu-fallback": "Replace the operators that have no lowering, or move them out of the model.",
    "probe": "Goes away with the operators that have no lowering.",
    "eager": "Move the operators into the compiled function; read values after the last step only.",
    "sync": "One sync a step is enough; the compiled function needs none inside.",
    "failed": "See the error; nothing after it can be trusted.",
}
