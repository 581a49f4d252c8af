"""Frames that Dynamo left to eager without an error, each with its cause.

Only for a torch whose Dynamo does not report its skips (2.11): elsewhere `frame_skips` sees them.
There Dynamo says nothing at all, so this asks what Dynamo itself asked, in the same order. It
watches the making of Dynamo's answer, not the call that gives it: an error passes through that
call, and our frame would stand in the program's traceback.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import callers, code_ref, origin
from compilescope.record.bodies import FrameSkipped, SkipCause


def _record(watch: Watch, call: HookedCall) -> None:
    memory = watch.frame
    watch.forget_frame()
    # The compilation is not over: what failed in the cache is told at its end.
    watch.frame.misses = memory.misses
    if call.get("guarded_code") is not None:
        return
    code = _asked_for()
    if code is None or origin(code.co_filename) == "torch":
        return  # Dynamo passes over its own and torch's frames all the time.
    cause, reason = _cause(code)
    if cause == "harmless" and memory.graph_id is not None and memory.failure_id is None:
        cause, reason = "backend", "the backend had the graph, and asked to skip the frame"
    if cause != "harmless":
        watch.sink.emit(FrameSkipped(code_ref(code), cause, reason), callers())


def _asked_for() -> CodeType | None:
    """Whose frame Dynamo was asked to compile; None where the answer is made for another reason."""
    from torch._dynamo.convert_frame import CatchErrorsWrapper

    asked, frame = CatchErrorsWrapper.__call__.__code__, sys._getframe()
    while frame.f_back is not None and frame.f_code is not asked:
        frame = frame.f_back
    return frame.f_locals["frame"].f_code if frame.f_code is asked else None


def _cause(code: CodeType) -> tuple[SkipCause, str]:
    from torch._dynamo import config, convert_frame, trace_rules

    if trace_rules.check(code):
        return "harmless", ""
    if config.disable:
        return "disabled", "Dynamo tracing is disabled"
    if _in_dispatch_mode(convert_frame, config):
        return "dispatch-mode", "non-infra torch dispatch mode present"
    return "harmless", ""


def _in_dispatch_mode(convert_frame: Any, config: Any) -> bool:
    ask = getattr(convert_frame, "is_in_any_mode_without_ignore_compile_internals", None)
    if getattr(config, "inline_torch_dispatch_torch_compile", False):
        ask = getattr(convert_frame, "any_torch_dispatch_mode_on_stack", None)
    return ask is not None and bool(ask())


HOOK = Hook(
    id="uncompiled-frames",
    module="torch._dynamo.convert_frame",
    target="ConvertFrameReturn.__init__",
    loses="frames that fell back to eager because of a dispatch mode, config.disable or a backend",
    after=_record,
    unless="CatchErrorsWrapper._handle_skip",
)
