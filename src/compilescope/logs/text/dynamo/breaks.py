"""Graph breaks: the root cause, the program's line, and what became of the frame.

A break is held until the log has told what followed it: torch 2.9 says only then that the frame was
skipped, and only the reason of the graph cut there still has the program's line where a compiler's
override stands in front of it.

tt-xla runs every operator through a `__torch_function__` of its own. Where the frame compiled is
the program's, the line that called the operator is to blame. Where it is the override's own frame,
an operator ran through it eagerly, after a break: an echo of that one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.frames import (
    Compiled,
    Frames,
    is_override,
    is_program,
    origin,
    recast,
)
from compilescope.logs.text.dynamo.record import LogRecord, frame_key
from compilescope.logs.words.break_words import read_break
from compilescope.logs.words.tracebacks import make_frame, read_traceback, user_part
from compilescope.record.bodies import BreakEcho, GraphBreak
from compilescope.record.break_text import BreakTexts, parse_message
from compilescope.record.python_text import read_literal
from compilescope.record.stack import CodeRef, Frame

_SKIPPED = re.compile(
    r"will skip tracing the frame (?P<name>\S{1,300}) "
    r"\((?P<file>.{1,1000}) line (?P<line>\d{1,9})\)"
)
_SKIP_2_9 = "Graph break: skip: from user code at:"
_NO_REASON = "a reason that the log does not include"
_STEP = "step_unsupported"
_CARETS = re.compile(r"^ {4,}[~^][~^ ]*$", re.M)
_NEW = re.compile(r"/lib/python3\.(?:1[1-9]|[2-9]\d)/")
_OLD = re.compile(r"[^\n]\nUser code traceback:")
_MOST_SITES = 20_000
"""Different places that are remembered. Chosen: a bound for memory."""


class Breaks:
    """The breaks of one process."""

    def __init__(self, console: Console, process: ConsoleProcess, frames: Frames) -> None:
        self._console = console
        self._process = process
        self._frames = frames
        self._held: Held | None = None
        self._known: dict[tuple[str, str, int], tuple[Frame, ...]] = {}
        self._echoes = Echoes(console, process)
        self._ids: dict[str, str] = {}
        self._unreported = ""
        self._old = False
        self._columns = False
        """Tracebacks of this process have carets (torch 2.13 and later, Python 3.11 and later)."""
        self.last_id: str | None = None
        """Of the last break that was written, and its body and compile id."""
        self.last: GraphBreak | None = None
        self.last_key = ""

    def told(self, record: LogRecord) -> bool:
        """A record of the artifact `graph_breaks`, or one that reads like it."""
        text = record.text
        compiled = self._frames.of(record.compile_id)
        code = compiled.code if compiled else None
        self.flush()
        self._columns = self._columns or _CARETS.search(text) is not None or is_new(text)
        words = read_break(text, code, columns=self._columns)
        if words is None:
            return self._told_skip(record, text)
        body = self._with_id(words.body)
        self._old = self._old or _OLD.search(text) is not None
        if self._old and body.outcome == "resumed":
            # torch 2.9 says in later lines, if at all, that it skipped the frame.
            body = msgspec.structs.replace(body, outcome="unknown")
        stack = recast(words.stack)
        self._hold(record, body, stack, (words.file, words.line), suppressed=words.suppressed)
        return True

    def _hold(
        self,
        record: LogRecord,
        body: GraphBreak,
        stack: tuple[Frame, ...],
        place: tuple[str, int],
        *,
        suppressed: bool = False,
    ) -> None:
        self._held = Held(
            body,
            stack,
            *place,
            time_ns=record.time_ns,
            compile_id=record.compile_id,
            suppressed=suppressed,
            epoch=self._frames.epoch,
            compiled=self._frames.of(record.compile_id),
        )

    def _with_id(self, body: GraphBreak) -> GraphBreak:
        """A break of which only the repetition lacks its link has the first one's."""
        if body.gb_id is not None:
            if len(self._ids) < _MOST_SITES:
                self._ids[body.gb_type] = body.gb_id
            return body
        known = self._ids.get(body.gb_type)
        return msgspec.structs.replace(body, gb_id=known) if known else body

    def _told_skip(self, record: LogRecord, text: str) -> bool:
        """`Graph break: torch.compile cannot properly resume from this graph break`: the reason
        itself comes in a record of its own, or not at all."""
        found = _SKIPPED.search(text)
        compiled = self._frames.of(record.compile_id)
        frames = tuple(user_part(recast(read_traceback(record.lines()))))
        if found is not None:
            code = self._frames.code(found["file"], int(found["line"]), found["name"])
        elif text.startswith(_SKIP_2_9) and compiled is not None:
            code = compiled.code
        elif text.startswith(_SKIP_2_9) and frames:
            code = CodeRef(frames[0].file, frames[0].line, frames[0].function)
        else:
            return False
        last = frames[-1] if frames else make_frame(code.file, code.line, code.function)
        outcome = "rest-eager" if code.resumed else "frame-eager"
        body = GraphBreak(_NO_REASON, outcome=outcome, frame=code)  # type: ignore[arg-type]
        self._hold(record, body, frames or (last,), (last.file, last.line))
        return True

    def cut_because(self, record: LogRecord, reason: CompileReason) -> None:
        """The graph before the break is compiled: its reason may know the line better."""
        message, self._unreported = self._unreported, ""
        if not reason.broken:
            return
        held = self._held
        if held is None or not self._same_frame(held, record.compile_id):
            if message and reason.stack and reason.reason == _STEP:
                self._add_unreported(record, message, reason)
            return
        if held.body.outcome == "unknown":
            held.body = msgspec.structs.replace(held.body, outcome="resumed")
        if held.suppressed and any(is_program(frame) for frame in reason.stack):
            held.stack = reason.stack

    def restarted(self, compile_id: str | None) -> None:
        """The frame is traced again up to the break, so as to resume after it."""
        held = self._held
        unknown = held is not None and held.body.outcome == "unknown"
        if held is not None and unknown and self._same_frame(held, compile_id):
            held.body = msgspec.structs.replace(held.body, outcome="resumed")

    def unreported(self, message: str) -> None:
        """An exception after which torch 2.9 compiles what it has and leaves the rest eager."""
        self._unreported = message

    def _add_unreported(self, record: LogRecord, message: str, reason: CompileReason) -> None:
        root, wrappers = BreakTexts().root_and_wrappers(message)
        compiled = self._frames.of(record.compile_id)
        body = GraphBreak(
            gb_type=root.gb_type,
            gb_id=root.gb_id,
            explanation=root.explanation,
            hints=root.hints,
            context=root.context,
            wrappers=wrappers,
            outcome="rest-eager",
            frame=compiled.code if compiled else None,
        )
        last = reason.stack[-1]
        callers = compiled.callers if compiled else ()
        stack = (*callers, *reason.stack)
        self.flush()
        self._hold(record, body, stack, (last.file, last.line))

    def skipped(self, compile_id: str | None) -> None:
        """The frame of the break that is held runs eagerly (torch 2.9's way to say so)."""
        held = self._held
        if held is not None and self._same_frame(held, compile_id):
            code = held.body.frame
            outcome = "rest-eager" if code is not None and code.resumed else "frame-eager"
            held.body = msgspec.structs.replace(held.body, outcome=outcome)

    def explained(self, message: str) -> None:
        """The exception behind a break whose record had no reason."""
        if self._held is not None and self._held.body.gb_type == _NO_REASON:
            fields = parse_message(message)
            self._held.body = msgspec.structs.replace(
                self._held.body,
                gb_type=fields.gb_type,
                gb_id=fields.gb_id,
                explanation=fields.explanation,
                hints=fields.hints,
                context=fields.context,
            )

    def _same_frame(self, held: Held, compile_id: str | None) -> bool:
        return frame_key(held.compile_id) == frame_key(compile_id)

    def flush(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        if self._echoes.takes(held, self.last_id):
            return
        stack = self._blamed(held, held.compiled)
        self.last_id = self._console.event(
            self._process,
            held.body,
            stack=stack,
            compile_id=held.compile_id,
            time_ns=held.time_ns,
            epoch=held.epoch,
        )
        self.last, self.last_key = held.body, frame_key(held.compile_id)
        self._echoes.remember(stack, self.last_id)

    def _blamed(self, held: Held, compiled: Compiled | None) -> tuple[Frame, ...]:
        """The stack, as far as anything in the log has told it."""
        key = (held.body.gb_type, held.file, held.line)
        if not held.suppressed:
            if len(self._known) < _MOST_SITES:
                self._known[key] = self._known["", held.file, held.line] = held.stack
            return held.stack
        # torch 2.9 suppresses by place alone, whatever the reason.
        before = self._known.get(key) or self._known.get(("", held.file, held.line))
        if before is not None and not is_override(held.file):
            return before
        callers = compiled.callers if compiled else ()
        return (*callers, *held.stack)


def is_new(text: str) -> bool:
    """Does a break's text come of a torch that marks columns, on a Python that knows them?"""
    return "\nStack variable source attribution:" in text and _NEW.search(text) is not None


def frame_of(code: CodeRef) -> Frame:
    """The first line of a code object, as the end of a stack."""
    return msgspec.structs.replace(
        make_frame(code.file, code.line, code.function), origin=origin(code.file)
    )


@dataclass
class Held:
    """A break of which the log may yet tell more."""

    body: GraphBreak
    stack: tuple[Frame, ...]
    file: str
    line: int
    time_ns: int
    compile_id: str | None
    suppressed: bool
    """torch left its stack out: the same break was reported before."""
    epoch: int = 0
    compiled: Compiled | None = None


class Echoes:
    """The echoes of one process."""

    def __init__(self, console: Console, process: ConsoleProcess) -> None:
        self._console = console
        self._process = process
        self._places: dict[tuple[str, int], str] = {}

    def remember(self, stack: tuple[Frame, ...], break_id: str) -> None:
        """A break of the program's own was written."""
        site = _site(stack)
        if site is not None and len(self._places) < _MOST_SITES:
            self._places[site.file, site.line] = break_id

    def takes(self, held: Held, last_id: str | None) -> bool:
        """Write the break as an echo, if it is one."""
        if not self._is_echo(held):
            return False
        body = held.body
        echo = BreakEcho(
            gb_type=body.gb_type,
            gb_id=body.gb_id,
            explanation=body.explanation,
            context=body.context,
            override=held.stack[-1] if held.stack else make_frame(held.file, held.line, ""),
            because=self._echoed(held) or last_id,
        )
        self._console.event(
            self._process,
            echo,
            stack=held.stack,
            compile_id=held.compile_id,
            time_ns=held.time_ns,
            epoch=held.epoch,
        )
        return True

    def _is_echo(self, held: Held) -> bool:
        if not is_override(held.file):
            return False
        if held.compiled is not None:
            return origin(held.compiled.code.file) == "torch"
        if held.suppressed:
            return _site(held.stack) is None
        # Without the frame's name: an operator runs through the override by itself only after a
        # break at its line.
        return self._echoed(held) is not None

    def _echoed(self, held: Held) -> str | None:
        site = _site(held.stack)
        return self._places.get((site.file, site.line)) if site else None


def _site(stack: tuple[Frame, ...]) -> Frame | None:
    return next((frame for frame in reversed(stack) if is_program(frame)), None)


_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_REASON = re.compile(
    rf"GraphCompileReason\(reason=(?P<reason>{_STRING}), user_stack=\[(?P<stack>[^\[\]]*)\]"
    r"(?:, graph_break=(?P<broken>True|False))?\)",
    re.S,
)
_SUMMARY = re.compile(
    r"<FrameSummary file (?P<file>[^<>\n]{1,1000}?), line (?P<line>\d{1,9}) in "
    r"(?P<name><\w+>|[^<>\n]{1,300})>(?=, <|$)"
)


class CompileReason(NamedTuple):
    """Why Dynamo stopped tracing and compiled what it had."""

    reason: str
    stack: tuple[Frame, ...]
    broken: bool | None
    """A graph break, and not the function's end."""


def read_reason(text: str) -> CompileReason | None:
    found = _REASON.search(text)
    if found is None:
        return None
    try:
        reason = str(read_literal(found["reason"]))
    except ValueError:
        reason = found["reason"][1:-1]
    frames = [
        make_frame(summary["file"], int(summary["line"]), summary["name"])
        for summary in _SUMMARY.finditer(found["stack"])
    ]
    broken = None if found["broken"] is None else found["broken"] == "True"
    return CompileReason(reason, recast(frames), broken)
