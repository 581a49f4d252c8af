"""Times compiled code: each region as it is entered and left, and each graph inside it."""

from __future__ import annotations

from typing import Any

from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import code_ref
from compilescope.instrument.torchapi.times.time_totals import GraphTotals

_PREFIX = "__compiled_fn"


def _wants(args: tuple[Any, ...]) -> bool:
    return len(args) < 2 or str(args[1]).startswith(_PREFIX)


def _time_graph(watch: Watch, call: HookedCall) -> None:
    """Wraps each compiled graph in a timer, under the global name by which Dynamo's code calls it.

    Only the entry in those globals is replaced, after every cache has seen the original.
    """
    name = call["name"]
    if watch.timing is None or not name.startswith(_PREFIX):
        return
    output_graph: Any = call["self"]
    translator = getattr(output_graph, "root_tx", None)
    reason = getattr(output_graph, "compile_subgraph_reason", None)
    captured, watch.frame.graph_id = watch.frame.graph_id, None
    totals = GraphTotals(
        compile_id=current_compile_id() or "",
        captured=captured,
        frame=code_ref(translator.f_code) if translator is not None else None,
        breaks=bool(getattr(reason, "graph_break", False)),
    )
    watch.timing.time_graph(output_graph.global_scope, name, totals)


def _time_region(watch: Watch, call: HookedCall) -> None:
    """Each `torch.compile` as it is made, so that entering and leaving its code is timed."""
    if watch.timing is not None:
        watch.timing.time_region(call["self"])


HOOKS = (
    Hook(
        id="timed-graphs",
        module="torch._dynamo.output_graph",
        target="OutputGraph.install_global_unsafe",
        loses="time inside compiled graphs",
        after=_time_graph,
        wants=_wants,
        only_with="time",
    ),
    Hook(
        id="timed-regions",
        module="torch._dynamo.eval_frame",
        target="_TorchDynamoContext.__init__",
        loses="time in compiled regions",
        after=_time_region,
        only_with="time",
    ),
)
