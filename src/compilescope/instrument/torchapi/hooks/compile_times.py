"""One compilation from start to end: its time by phase, its recompile reasons, how it failed.

The metrics context ends every compilation, backward ones and refused ones too, so what the
other hooks gathered on the way is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import time_ns
from typing import Any, Literal

from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.guards.misses import Misses
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import (
    callers,
    code_ref,
    frames_of,
    full_stack,
    named_code_ref,
    traced_lines,
    with_code,
    with_columns,
)
from compilescope.instrument.torchapi.times.memory import memory_taken
from compilescope.record.bodies import CompileFailed, CompileTime, Recompile
from compilescope.record.break_text import is_untyped
from compilescope.record.error_text import graph_break_link, innermost_cause
from compilescope.record.stack import CodeRef, Frame

_MOST_WORDS = 4000
"""Letters of an error. Chosen: some carry the whole log of a compiler, and every event is read
again by each view."""
_REFUSALS: dict[str, Literal["limit", "error"]] = {
    "FailOnRecompileLimitHit": "limit",
    "RecompileError": "error",
}


def _record(watch: Watch, call: HookedCall) -> None:
    context: Any = call["self"]
    if getattr(context, "_level", 1) != 1:
        return  # An inner context: the outermost one speaks for all.
    metrics: dict[str, Any] = context._metrics
    error = call.get("exc_value")
    compile_id = metrics.get("compile_id") or current_compile_id()
    compile_id = None if compile_id is None else str(compile_id)
    frame = _frame(metrics, watch)
    phase: Literal["forward", "backward"] = (
        "backward" if metrics.get("is_forward") is False else "forward"
    )
    above = callers() if phase == "forward" or watch.frame.misses else []
    _write_recompile(watch, error, frame, compile_id, above)
    if error is not None and _is_failure(error):
        _write_failure(watch, error, phase, frame, compile_id)
    phases = {name: us for name, us in metrics.items() if name.endswith("_us") and type(us) is int}
    current = watch.counts.current if watch.counts is not None else None
    body = CompileTime(
        duration_ns=time_ns() - context._start_time_ns,
        phases_us=phases,
        phase=phase,
        ok=error is None and metrics.get("fail_type") is None,
        frame=frame,
        guards=metrics.get("guard_count"),
        restarts=tuple(sorted(str(reason) for reason in metrics.get("restart_reasons") or ())),
        region=current[0] if current else None,
        call=current[1] if current else None,
        memory=memory_taken(),
    )
    more = watch.is_written_soon(compile_id)
    watch.sink.emit(body, above if phase == "forward" else (), compile_id, more=more)


def _frame(metrics: dict[str, Any], watch: Watch) -> CodeRef | None:
    name = metrics.get("co_name")
    if name is None:
        code = watch.frame.misses.code
        return None if code is None else code_ref(code)
    file, line = metrics.get("co_filename") or "", metrics.get("co_firstlineno") or 0
    return named_code_ref(file, line, name)


def _write_recompile(
    watch: Watch,
    error: Any,
    compiled: CodeRef | None,
    compile_id: str | None,
    above: Sequence[Frame],
) -> None:
    misses, watch.frame.misses = watch.frame.misses, Misses()
    if misses:
        # An entry whose objects are gone has no code left; the frame at hand is the same one.
        frame = code_ref(misses.code) if misses.code is not None else compiled
        if frame is None:
            return
        refused: Literal["", "limit", "error"] = ""
        if getattr(error, "frame_exec_strategy", None) is not None:
            refused = "limit"
        elif error is not None:
            refused = _REFUSALS.get(type(error).__name__, "")
        body = Recompile(frame, misses.entries(), refused, misses.unlisted)
        watch.sink.emit(body, above, compile_id, more=True)


def _is_failure(error: BaseException) -> bool:
    """False for what Dynamo takes in its stride: breaks it logged, frames it gave up."""
    if getattr(error, "logged", False):
        return False
    return getattr(error, "frame_exec_strategy", None) is None


def _write_failure(
    watch: Watch,
    error: BaseException,
    phase: Literal["forward", "backward"],
    frame: CodeRef | None,
    compile_id: str | None,
) -> None:
    from torch._dynamo import exc

    root = None
    message = getattr(error, "msg", None) or str(error)
    if isinstance(error, (exc.Unsupported, exc.UserError)) or is_untyped(message):
        root, _ = watch.texts.root_and_wrappers(message)
    link, linked_id = graph_break_link(message)
    is_backend = isinstance(error, exc.BackendCompilerFailed)
    stack = getattr(error, "real_stack", None) or traced_lines(error)
    body = CompileFailed(
        error=type(error).__name__,
        message=_short(message),
        phase=phase,
        gb_type=root.gb_type if root else None,
        gb_id=(root.gb_id if root else None) or linked_id,
        hints=root.hints if root else (),
        backend=getattr(error, "backend_name", None),
        frame=frame,
        cause=innermost_cause(message),
        link=link,
    )
    frames = frames_of(stack)
    if phase == "forward":
        frames = with_columns(full_stack(stack), error, None)
    if frame is not None and (not stack or is_backend):
        frames = with_code(callers(), frame)
    memory = watch.frame
    memory.failure_id = watch.sink.emit(body, frames, compile_id)
    memory.failure_backend = is_backend
    if watch.failed is not None:
        watch.failed(error)


def _short(message: str) -> str:
    return message if len(message) <= _MOST_WORDS else message[:_MOST_WORDS] + "…"


HOOK = Hook(
    id="compile-times",
    module="torch._dynamo.metrics_context",
    target="MetricsContext.__exit__",
    loses="compile time by phase, failures, and recompiles",
    before=_record,
    cleans_up=True,
)
