"""CUDA graphs that were asked for and not used: what torch logs about it, at run time too."""

from __future__ import annotations

from compilescope.model.bodies import CudagraphSkip
from compilescope.torchapi.compilation.current import current_compile_id
from compilescope.torchapi.hook import Hook, HookedCall, Watch

_PREFIX = "skipping cudagraphs due to "


def record_skip(watch: Watch, reason: str) -> None:
    """Once for each compilation and reason: torch may both log it and keep it on the graph."""
    while reason.startswith(_PREFIX):  # torch 2.11 puts it in front twice
        reason = reason.removeprefix(_PREFIX)
    reason = reason.strip()
    compile_id = current_compile_id()
    if watch.first_time("cudagraph", compile_id, reason):
        watch.sink.emit(CudagraphSkip(reason), compile_id=compile_id)


def _record(watch: Watch, call: HookedCall) -> None:
    record_skip(watch, str(call["msg"]))


HOOK = Hook(
    id="cudagraph-logs",
    module="torch._inductor.cudagraph_utils",
    target="log_cudagraph_skip_and_bump_counter",
    loses="CUDA graphs skipped at run time",
    before=_record,
    everywhere=True,
)
