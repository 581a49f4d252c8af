"""The kernels that Inductor's wrapper code calls, noted while it is written.

torch keeps such notes only where provenance tracking is on, which changes its cache keys. A graph
that is never finished takes its notes along when it goes.
"""

from __future__ import annotations

import weakref
from typing import Any

from compilescope.model.graph import KernelCall

_noted: weakref.WeakKeyDictionary[Any, dict[int, list[KernelCall]]] = weakref.WeakKeyDictionary()


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
        _noted.setdefault(graph, {}).setdefault(id(owner), []).append(call)


def take_calls(owner: object, graph: Any) -> tuple[KernelCall, ...]:
    return tuple(_noted.get(graph, {}).pop(id(owner), ()))
