"""CUDA graphs that were asked for and not used: decided when a graph is compiled.

What torch decides at run time, it logs; see `cudagraph_logs`.
"""

from __future__ import annotations

from typing import Any

from compilescope.torchapi.hook import Hook, HookedCall, Watch
from compilescope.torchapi.hooks.cudagraph_logs import record_skip


def _record(watch: Watch, call: HookedCall) -> None:
    from torch._inductor import config

    asked_for = call["graph_kwargs"].get("cudagraphs") or config.triton.cudagraphs
    if not asked_for:
        return
    graph: Any = call["self"]
    info = getattr(graph, "cudagraph_info", None)
    reasons = [getattr(graph, "disabled_cudagraphs_reason", None)]
    reasons += getattr(info, "cudagraph_fail_reasons", None) or []
    for reason in reasons:
        if reason:
            record_skip(watch, str(reason))


HOOK = Hook(
    id="cudagraphs",
    module="torch._inductor.output_code",
    target="CompiledFxGraph.post_compile",
    loses="CUDA graphs skipped at compile time",
    before=_record,
)
