"""Records of symbolic sizes in a trace, as events: symbol made, guard added, size specialized."""

from __future__ import annotations

from typing import Any

from compilescope.logs.trace.process import TracedProcess
from compilescope.logs.trace.record import ShapeMeta, TraceRecord
from compilescope.model.logged import ShapeAction, SymbolicShape

_ACTIONS: dict[str, ShapeAction] = {
    "create_symbol": "created",
    "create_unbacked_symbol": "unbacked",
    "guard_added": "guarded",
    "guard_added_fast": "guarded",
    "symbolic_shape_specialization": "specialized",
    "propagate_real_tensors": "assumed",
}
_LONGEST = 2000
"""Letters. Chosen: a bound for a value of any content."""
KINDS = tuple(_ACTIONS)


def shape(process: TracedProcess, record: TraceRecord) -> None:
    meta: ShapeMeta | None = getattr(record.line, record.kind)
    if meta is None:
        return
    value = _word(meta.val) or _word(meta.value) or _word(meta.result)
    sources = tuple(_word(source) for source in meta.sources or ()) or (
        (_word(meta.source),) if meta.source else ()
    )
    body = SymbolicShape(
        action=_ACTIONS[record.kind],
        symbol=_word(meta.symbol),
        expression=_word(meta.expr),
        value=value,
        sources=sources,
        reason=_word(meta.reason) or _word(meta.vr),
    )
    if record.kind == "create_symbol" and value:
        process.compilation(record).symbols.update(dict.fromkeys(sources, value))
    process.emit(record, body, process.frames(meta.user_stack or ()))


def _word(value: Any) -> str:
    return "" if value is None else str(value)[:_LONGEST]
