"""Records of a trace that say why a program is compiled in parts or again, as events.

Graph breaks and failed compilations, guards and recompile reasons, symbolic sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from compilescope.logs.trace.process import TracedCompilation, TracedProcess
from compilescope.logs.trace.record import ShapeMeta, TraceRecord
from compilescope.record.bodies import GuardSet, Recompile
from compilescope.record.guards import KIND, count_kinds
from compilescope.record.logged import ShapeAction, SymbolicShape
from compilescope.record.stack import CodeRef

if TYPE_CHECKING:
    from compilescope.logs.words.break_words import BreakWords


# Chosen: bounds for memory; the end of an error says what it was.
_LONGEST_ERROR = 200_000
_MOST_WORDS = 500


def graph_break(process: TracedProcess, record: TraceRecord) -> None:
    compilation = process.compilation(record)
    words = _words(process, record, compilation.code)
    if words is None:
        process.source.tally.lose(record.payload)
        process.kept.add(record, "dynamo_graph_break_reason")
        return
    if compilation.code is not None:
        # Its stack is whole, which that of the compilation's start often is not.
        compilation.region = process.region_of(words.stack, compilation.code)
    process.writer.sources(words.stack)
    event = process.emit(record, words.body, words.stack)
    compilation.breaks.append((event, words.body))


def _words(process: TracedProcess, record: TraceRecord, code: CodeRef | None) -> BreakWords | None:
    """A break that comes again is told in the same words; the trace says which those are."""
    key = (record.line.has_payload, code)
    known = process.break_words.get(key) if key[0] else None
    if known is not None:
        return known
    from compilescope.logs.words.break_words import read_break

    text = record.text().decode("utf-8", "replace")
    words = read_break(text, code, columns=bool(process.has_columns))
    if words is not None and key[0]:
        if len(process.break_words) >= _MOST_WORDS:
            process.break_words.clear()
        process.break_words[key] = words
    return words


def error(process: TracedProcess, record: TraceRecord) -> None:
    """The metrics that end the compilation tell that it failed; the traceback is here."""
    process.compilation(record).error_text = record.text()[-_LONGEST_ERROR:]
    process.kept.add(record, "dynamo_error")


_strings = msgspec.json.Decoder(list[str])


def guards(process: TracedProcess, record: TraceRecord) -> None:
    kinds = count_kinds(record.payload)
    body = GuardSet(
        count=sum(kinds.values()),
        kinds=kinds,
        artifact=process.payload(record, KIND),
        frame=process.compilation(record).code,
    )
    process.keep_guards(record.compilation or "", record.text())
    process.emit(record, body)


def recompile_reasons(process: TracedProcess, record: TraceRecord) -> None:
    from compilescope.logs.words.recompile_words import read_reason

    compilation = process.compilation(record)
    for text in _reasons(record.text()):
        miss = read_reason(text, process.files)
        if miss is None:
            process.source.tally.lose(text.encode("utf-8", "replace"))
        else:
            compilation.misses.append(miss)


def _reasons(payload: bytes) -> list[str]:
    """One reason comes as it is, several as a list."""
    if payload.lstrip().startswith(b"["):
        try:
            return _strings.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    return [payload.decode("utf-8", "replace")]


def write_recompile(
    process: TracedProcess,
    record: TraceRecord,
    compilation: TracedCompilation,
    code: CodeRef | None,
    refused: Literal["", "limit", "error"],
) -> None:
    if not compilation.misses or code is None:
        return
    from compilescope.logs.words.failed_guards import explained, facts_of

    new = process.guard_lines(record.compilation or "")
    entries = []
    for miss in compilation.misses:
        old = process.guard_lines(miss.compile_id)
        facts = facts_of(new.beside(old, process.files), compilation.symbols)
        entries.append(explained(miss, old.beside(new, process.files), facts))
    body = Recompile(code, tuple(entries), refused)
    frames = [failed.frame for entry in entries for failed in entry.failed if failed.frame]
    process.writer.sources((*compilation.callers, *frames))
    process.emit(record, body, compilation.callers)


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
SHAPE_KINDS = tuple(_ACTIONS)


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
