"""Frames that fell back to eager on an error that Dynamo suppressed.

Only for a torch whose Dynamo does not report its skips (2.11): elsewhere `frame_skips` sees them.
"""

from __future__ import annotations

from typing import Any

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import callers, code_ref, origin, region
from compilescope.record.bodies import FrameSkipped, SkipCause


def _record(watch: Watch, call: HookedCall) -> None:
    error: Any = call["exc"]
    code = call["code"]
    memory = watch.frame
    watch.forget_frame()
    if origin(code.co_filename) == "torch":
        return
    root, _ = watch.texts.root_and_wrappers(getattr(error, "msg", None) or str(error))
    cause: SkipCause = "graph-break"
    if getattr(error, "frame_exec_strategy", None) is not None:
        cause = "recompile-limit"
    elif memory.failure_id is not None:
        cause = "backend" if memory.failure_backend else "error"
    elif "generator" in root.gb_type:
        cause = "generator" if region() is None else "harmless"
    because = memory.failure_id or memory.last_break_id
    body = FrameSkipped(code_ref(code), cause, root.gb_type, root.gb_type, root.gb_id, because)
    watch.sink.emit(body, callers())


HOOK = Hook(
    id="suppressed-errors",
    module="torch._dynamo.convert_frame",
    target="format_error_msg",
    loses="frames that fell back to eager because of a suppressed error",
    before=_record,
    unless="CatchErrorsWrapper._handle_skip",
)
