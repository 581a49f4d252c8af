"""CUDA graphs that were asked for and not used."""

from __future__ import annotations

from typing import Any

from compilescope.model.bodies import CudagraphSkip
from compilescope.torchapi.compile_ids import current_compile_id
from compilescope.torchapi.hook import Call, Hook, Watch


def _record(watch: Watch, call: Call) -> None:
    graph: Any = call["self"]
    reason = getattr(graph, "disabled_cudagraphs_reason", None)
    if reason:
        watch.sink.emit(CudagraphSkip(str(reason)), compile_id=current_compile_id())


HOOK = Hook(
    id="cudagraphs",
    module="torch._inductor.output_code",
    target="CompiledFxGraph.post_compile",
    loses="skipped CUDA graphs",
    after=_record,
)
