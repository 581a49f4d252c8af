"""The text that torch writes for a graph break, read into the break's fields and its stack.

It goes from `Graph break in user code at` to the end of its traceback. TORCH_TRACE has it as one
payload, TORCH_LOGS as the lines of one record. Seen in 2.9 to 2.13.
"""

from __future__ import annotations

import re

import msgspec

from compilescope.base.patterns import late
from compilescope.logs.words.tracebacks import (
    make_frame,
    read_traceback,
    user_part,
    without_false_column,
)
from compilescope.record.bodies import BreakOutcome, GraphBreak
from compilescope.record.break_text import BreakTexts
from compilescope.record.stack import CodeRef, Frame

_PLACE = late(
    r"Graph break (?:\(.{0,200}?\) )?(?:in user code )?at "
    r"(?P<file>.{1,500}?):(?P<line>\d{1,9})\s*$",
    re.M,
)
_REASON = "Graph Break Reason: "
_LEAD = late(
    r"\A(?:Encountered graph break|Failed to handle graph break gracefully)[^\n]*:[ \t]*\n\s*\n?"
)
"""What torch 2.11 and later put before the reason itself."""
_ENDS = ("\nUser code traceback:", "\nStack variable source attribution:")
_TRACEBACK = "User code traceback:"
_BYTECODE = late(r"\n(?:NOTE: the most recent|Most recent bytecode instructions)")
_TEXTS = BreakTexts()
"""None: a log has no message in the making."""
_JUMP = late(r"attempted to jump|Data-dependent branching")
"""The break is at a condition, which may well begin with a call."""
_CALL = late(r"\A\s*Encountered graph break when attempting to trace CALL\b")
"""What broke was a call: from 2.11 on torch names the instruction."""


class BreakWords(msgspec.Struct, frozen=True):
    """One break as a log tells it."""

    body: GraphBreak
    stack: tuple[Frame, ...]
    file: str
    line: int
    suppressed: bool
    """torch left the stack out as a repetition: it is the place alone."""


def read_break(
    text: str, code: CodeRef | None = None, *, columns: bool = False
) -> BreakWords | None:
    """The break that `text` tells of, met while `code` was compiled; None where it tells none.

    With `columns`, the writer is known to draw carets under its tracebacks.
    """
    place = _PLACE.search(text)
    if place is None:
        return None
    file, line = place["file"], int(place["line"])
    if _REASON not in text and _TRACEBACK not in text:
        # A repetition, of which nothing but the place is told; a log may have 100,000.
        here = make_frame(file, line, code.function if code else "")
        return BreakWords(GraphBreak("", frame=code), (here,), file, line, True)
    _, found, rest = text.partition(_REASON)
    reason = rest if found else ""
    for end in _ENDS:
        reason = reason.partition(end)[0]
    below = text.partition(_TRACEBACK)[2]
    stack: tuple[Frame, ...] = ()
    if below:
        lines = _BYTECODE.split(below)[0].splitlines()[1:]
        # With TORCHDYNAMO_VERBOSE the callers come apart from the frames that were traced.
        call = not _JUMP.search(reason)
        frames = read_traceback(lines, columns=columns, gaps=True, call=call)
        if _CALL.search(reason):
            frames[-1:] = map(without_false_column, frames[-1:])
        stack = tuple(user_part(frames))
    suppressed = not stack
    if suppressed:
        stack = (make_frame(file, line, code.function if code else ""),)
    root, wrappers = _TEXTS.root_and_wrappers(_LEAD.sub("", reason.strip("\n")).rstrip())
    body = GraphBreak(
        gb_type=root.gb_type,
        gb_id=root.gb_id,
        explanation=root.explanation,
        hints=root.hints,
        context=root.context,
        wrappers=wrappers,
        outcome=outcome_of(reason, resumed=code is not None and code.resumed),
        frame=code,
    )
    return BreakWords(body, stack, file, line, suppressed)


def outcome_of(reason: str, *, resumed: bool) -> BreakOutcome:
    """What became of the frame: torch says it in words only, at the start of the reason."""
    if reason.startswith("Failed to handle graph break gracefully"):
        return "rest-eager" if resumed else "frame-eager"
    if reason.startswith("Encountered graph break that we cannot resume from"):
        return "rest-eager"
    if not reason:
        return "unknown"
    return "resumed"
