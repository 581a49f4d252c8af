"""Frames that Dynamo left to eager, each with its cause.

torch calls this for every frame that Dynamo looked at; those that were compiled are passed over.
"""

from __future__ import annotations

import os
from typing import Any

from compilescope.base.package import PACKAGE
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import callers, code_ref, origin, region
from compilescope.record.bodies import FrameSkipped, SkipCause
from compilescope.record.stack import CodeRef

_CAUSES: dict[str, SkipCause] = {
    "non-infra torch dispatch mode present": "dispatch-mode",
    "Dynamo tracing is disabled": "disabled",
    "an error was suppressed during compilation": "unexplained",
    "compilation failed with a custom frame execution strategy": "unexplained",
}
_OURS = PACKAGE + os.sep
_SKIP_ASKED_FOR = "Dynamo decided to skip the frame while tracing"
_NOTHING_TO_COMPILE = "No ops traced"


def _record(watch: Watch, call: HookedCall) -> None:
    result, frame = call["result"], call["frame"]
    memory, latest = watch.frame, watch.texts.latest
    watch.forget_frame()
    watch.texts.latest = None
    if result.guarded_code is not None:
        return
    body = _skipped(code_ref(frame.f_code), result, memory, latest, frame.f_code)
    file = frame.f_code.co_filename
    if body.cause == "harmless" and (origin(file) == "torch" or file.startswith(_OURS)):
        return  # Dynamo passes over its own and torch's frames all the time, and over our hooks'.
    watch.sink.emit(body, callers())


def _skipped(where: CodeRef, result: Any, memory: Any, latest: Any, code: Any) -> FrameSkipped:
    reason = result.skip_reason or ""
    if str(result.frame_exec_strategy.cur_action).endswith("RUN_ONLY"):
        words = latest.explanation if latest else reason
        return FrameSkipped(where, "recompile-limit", words)
    if memory.last_break is not None and memory.code is code:
        root = memory.last_break
        return FrameSkipped(
            where, "graph-break", root.gb_type, root.gb_type, root.gb_id, memory.last_break_id
        )
    if memory.failure_id is not None:
        cause: SkipCause = "backend" if memory.failure_backend else "error"
        return FrameSkipped(where, cause, reason, because=memory.failure_id)
    cause = next((c for start, c in _CAUSES.items() if reason.startswith(start)), "harmless")
    if reason.startswith(_SKIP_ASKED_FOR) and _NOTHING_TO_COMPILE not in reason:
        cause = "backend"
    if cause == "unexplained" and latest is not None:
        # The exception was swallowed before any log call: its message is all that is left.
        cause = "graph-break"
        if "generator" in latest.gb_type:
            # Only a generator that was compiled itself is a loss; one that an eager frame drives
            # (a context manager's, say) would not have been a frame of its own.
            cause = "generator" if region() is None else "harmless"
        return FrameSkipped(where, cause, latest.gb_type, latest.gb_type, latest.gb_id)
    return FrameSkipped(where, cause, reason)


HOOK = Hook(
    id="frame-skips",
    module="torch._dynamo.convert_frame",
    target="CatchErrorsWrapper._handle_skip",
    loses="frames that fell back to eager because of a dispatch mode, config.disable or a backend",
    before=_record,
)
