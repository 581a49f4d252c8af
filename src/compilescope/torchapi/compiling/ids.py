"""Which compilation is at work in this thread."""

from __future__ import annotations

from torch._guards import CompileContext


def current_compile_id() -> str | None:
    """Dynamo's `frame/compile`, with `_attempt` after a restart."""
    trace_id = CompileContext.current_trace_id()
    return None if trace_id is None else str(trace_id)
