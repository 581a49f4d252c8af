"""The kernels that Inductor's wrapper code calls, noted by graph while that code is written.

torch keeps such notes only where provenance tracking is on, which changes its cache keys. Notes are
held weakly: those of a graph that is never finished are freed with it.
"""

from __future__ import annotations

from typing import Any

from compilescope.model.graph import KernelCall
from compilescope.torchapi.weak_notes import WeakNotes

_noted: WeakNotes[dict[int, list[KernelCall]]] = WeakNotes()


def current_graph() -> Any:
    """The graph that Inductor lowers now in this thread; None where it lowers none."""
    from torch._inductor.virtualized import V

    graph = V.graph
    # The branches of a `torch.cond` are lowered apart and written into their parent's code.
    while getattr(graph, "parent", None) is not None:
        graph = graph.parent
    return graph if hasattr(graph, "graph") else None


def note_call(owner: object, call: KernelCall) -> None:
    """Captures may nest; each keeps its own notes."""
    graph = current_graph()
    if graph is not None:
        notes = _noted.get(graph, {})
        _noted[graph] = notes
        notes.setdefault(id(owner), []).append(call)


def take_calls(owner: object, graph: Any) -> tuple[KernelCall, ...]:
    return tuple(_noted.get(graph, {}).pop(id(owner), ()))
