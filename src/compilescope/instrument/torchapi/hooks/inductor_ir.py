"""Inductor's IR before and after fusion, on request only: rendering it costs about a tenth of the
compile."""

from __future__ import annotations

from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Observer, Watch
from compilescope.record.bodies import GraphCaptured, GraphStage


def _recorder(stage: GraphStage) -> Observer:
    """An observer that writes the scheduler's nodes as a graph of this stage."""

    def record(watch: Watch, call: HookedCall) -> None:
        from torch._inductor.debug import DebugFormatter

        nodes = call["nodes"]
        text = DebugFormatter._write_ir(nodes)
        body = GraphCaptured(stage=stage, text=watch.sink.artifact(text, "txt"), nodes=len(nodes))
        watch.sink.emit(body, compile_id=current_compile_id())

    return record


HOOKS = (
    Hook(
        id="ir-before-fusion",
        module="torch._inductor.debug",
        target="log_ir_pre_fusion",
        loses="Inductor's IR before fusion",
        before=_recorder("ir_pre_fusion"),
        everywhere=True,
        only_with="ir",
    ),
    Hook(
        id="ir-after-fusion",
        module="torch._inductor.debug",
        target="log_ir_post_fusion",
        loses="Inductor's IR after fusion",
        before=_recorder("ir_post_fusion"),
        everywhere=True,
        only_with="ir",
    ),
)
