"""Records of graph breaks in a trace, as events; also the traceback of a failed compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.logs.trace.process import TracedProcess
from compilescope.logs.trace.record import TraceRecord
from compilescope.model.stack import CodeRef

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
