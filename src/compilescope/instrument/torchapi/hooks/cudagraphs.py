"""CUDA graphs that were asked for and not used."""

from __future__ import annotations

from typing import Any

from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.record.bodies import CudagraphSkip

_PREFIX = "skipping cudagraphs due to "


def _record_skip(watch: Watch, reason: str) -> None:
    """Once for each compilation and reason: torch may both log it and keep it on the graph."""
    while reason.startswith(_PREFIX):  # torch 2.11 puts it in front twice
        reason = reason.removeprefix(_PREFIX)
    reason = reason.strip()
    compile_id = current_compile_id()
    if watch.first_time("cudagraph", compile_id, reason):
        watch.sink.emit(CudagraphSkip(reason), compile_id=compile_id)


def _record_logged(watch: Watch, call: HookedCall) -> None:
    """What torch logs about it, at run time too."""
    _record_skip(watch, str(call["msg"]))


def _record_decided(watch: Watch, call: HookedCall) -> None:
    """What torch decides when a graph is compiled."""
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
            _record_skip(watch, str(reason))


HOOKS = (
    Hook(
        id="cudagraph-logs",
        module="torch._inductor.cudagraph_utils",
        target="log_cudagraph_skip_and_bump_counter",
        loses="CUDA graphs skipped at run time",
        before=_record_logged,
        everywhere=True,
    ),
    Hook(
        id="cudagraphs",
        module="torch._inductor.output_code",
        target="CompiledFxGraph.post_compile",
        loses="CUDA graphs skipped at compile time",
        before=_record_decided,
    ),
)
