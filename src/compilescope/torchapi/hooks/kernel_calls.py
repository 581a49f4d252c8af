"""Which nodes of the post-grad graph each kernel of Inductor computes.

torch calls this for every kernel that it writes; the notes are kept by `inductor.kernel_calls`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compilescope.model.graph import KernelCall
from compilescope.torchapi.hook import Hook, HookedCall, Watch
from compilescope.torchapi.inductor.kernel_calls import note_call


def _record(watch: Watch, call: HookedCall) -> None:
    schedule = call["node_schedule"]
    if call.get("is_extern"):
        # Its origins may reach back into kernels before it; the node itself is exact.
        exact = getattr(schedule, "origin_node", None)
        origins = schedule.origins if exact is None else (exact,)
    else:
        origins = (origin for node in _lowered(schedule) for origin in node.origins)
    names = dict.fromkeys(origin.name for origin in origins)
    note_call(watch, KernelCall(str(call["kernel_name"]), tuple(names)))


def _lowered(schedule: Iterable[Any]) -> Iterable[Any]:
    """Marks between the nodes of a schedule have no node of their own."""
    for scheduled in schedule:
        node = getattr(scheduled, "node", None)
        if node is not None and hasattr(node, "origins"):
            yield node


HOOK = Hook(
    id="kernel-calls",
    module="torch._inductor.debug",
    target="set_kernel_post_grad_provenance_tracing",
    loses="which nodes each kernel computes, where its code does not say",
    before=_record,
    everywhere=True,
)
