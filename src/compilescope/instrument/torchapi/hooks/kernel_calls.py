"""Which nodes of the post-grad graph each kernel of Inductor computes, noted by graph while the
wrapper code that calls it is written.

torch calls this for every kernel that it writes. It keeps such notes itself only where provenance
tracking is on, which changes its cache keys. Ours are held weakly: those of a graph that is never
finished are freed with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.weak_notes import WeakNotes
from compilescope.record.graph import KernelCall

_noted: WeakNotes[dict[int, list[KernelCall]]] = WeakNotes()


def _record(watch: Watch, call: HookedCall) -> None:
    schedule = call["node_schedule"]
    if call.get("is_extern"):
        # Its origins may reach back into kernels before it; the node itself is exact.
        exact = getattr(schedule, "origin_node", None)
        origins = schedule.origins if exact is None else (exact,)
    else:
        origins = (origin for node in _lowered(schedule) for origin in node.origins)
    names = dict.fromkeys(origin.name for origin in origins)
    _note_call(watch, KernelCall(str(call["kernel_name"]), tuple(names)))


def _lowered(schedule: Iterable[Any]) -> Iterable[Any]:
    """Marks between the nodes of a schedule have no node of their own."""
    for scheduled in schedule:
        node = getattr(scheduled, "node", None)
        if node is not None and hasattr(node, "origins"):
            yield node


def current_graph() -> Any:
    """The graph that Inductor lowers now in this thread; None where it lowers none."""
    from torch._inductor.virtualized import V

    graph = V.graph
    # The branches of a `torch.cond` are lowered apart and written into their parent's code.
    while getattr(graph, "parent", None) is not None:
        graph = graph.parent
    return graph if hasattr(graph, "graph") else None


def _note_call(owner: object, call: KernelCall) -> None:
    """Captures may nest; each keeps its own notes."""
    graph = current_graph()
    if graph is not None:
        notes = _noted.get(graph, {})
        _noted[graph] = notes
        notes.setdefault(id(owner), []).append(call)


def take_calls(owner: object, graph: Any) -> tuple[KernelCall, ...]:
    return tuple(_noted.get(graph, {}).pop(id(owner), ()))


HOOK = Hook(
    id="kernel-calls",
    module="torch._inductor.debug",
    target="set_kernel_post_grad_provenance_tracing",
    loses="which nodes each kernel computes, where its code does not say",
    before=_record,
    everywhere=True,
)
