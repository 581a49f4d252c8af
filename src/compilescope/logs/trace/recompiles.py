"""Records of guards and of recompile reasons in a trace, as events."""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.logs.trace.process import TracedCompilation, TracedProcess
from compilescope.logs.trace.record import TraceRecord
from compilescope.model.bodies import GuardSet, Recompile
from compilescope.model.guard_text import KIND, count_kinds
from compilescope.model.stack import CodeRef

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


def reasons(process: TracedProcess, record: TraceRecord) -> None:
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
