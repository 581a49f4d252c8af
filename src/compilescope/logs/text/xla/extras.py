"""What PT_XLA_DEBUG=1 adds to torch_xla's log: operators without a lowering, and metrics reports.

For each such operator it keeps which line calls it and how often.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.origins import recast
from compilescope.logs.text.lines import Tag, plain
from compilescope.logs.text.xla.blocks import FRAME
from compilescope.logs.words.tracebacks import make_frame
from compilescope.model.bodies import FallbackOps, LogLine
from compilescope.model.stack import Frame

_FALLBACK = re.compile(rb"Dynamo fallback ops are\s*\[(?P<ops>[^\[\]]*)\]")
_UNLOWERED = b"pt-xla-profiler: Op(s) not lowered:"
_OP = re.compile(rb"aten::[\w.]+|[A-Za-z_][\w:.]*")
_PROFILER = re.compile(rb"(?:WARNING:)?pt-xla-profiler:\s?(?P<text>.*)")
_SUMMARY = re.compile(rb"(?:WARNING:)?pt-xla-profiler:(?P<text>.*)$")
_COUNT = re.compile(rb"FRAME \(count=(?P<count>\d{1,12})\):\s*$")
_NAMED = re.compile(rb'Unlowered Op: "(?P<op>[^"]{1,200})"')
_COUNTER = re.compile(rb"^Counter: (?P<op>aten::[\w.]+)\s*$")
_VALUE = re.compile(rb"^\s+Value: (?P<value>\d{1,15})\s*$")
_ANY_OPERATOR = ("xla_fallback",)
"""What the summary calls it where it doesn't name the operator."""
_NUMBER = re.compile(r"\d+")
# Chosen: bounds for memory.
_MOST_NOTES = 200
_MOST_SETS = 1000
_MOST_FRAMES = 200
_Teller = Literal["dynamo", "profiler", "counter"]
_Key = tuple[_Teller, tuple[str, ...], tuple[Frame, ...]]


@dataclass
class _OperatorMention:
    """What the log says of some operators."""

    process: ConsoleProcess
    line: int
    count: int = 0


@dataclass
class _Caller:
    """A block of the summary at the end: how often an operator was called from one place."""

    process: ConsoleProcess
    count: int
    line: int
    op: str = ""
    frames: tuple[Frame, ...] = ()
    """Innermost first, as the log has them."""


class Extras:
    """The extras of one log, counted."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ops: dict[tuple[int, int, _Key], _OperatorMention] = {}
        """By process: ranks count for themselves."""
        self._notes: dict[str, tuple[ConsoleProcess, str, int]] = {}
        self._callers: dict[bytes, _Caller] = {}
        self._counters: dict[bytes, tuple[str, int]] = {}
        """Counters of which the value is still to come, by the tag of their lines."""
        self.seen = False

    def line(self, line: bytes, tag: Tag) -> bool:
        if tag.text in self._counters:
            op, number = self._counters.pop(tag.text)
            value = _VALUE.match(line)
            if value is not None:
                self._add_counter(op, int(value["value"]), number, tag)
                return True
        counter = _COUNTER.match(line)
        if counter is not None:
            self._counters[tag.text] = (plain(counter["op"]), self._console.line_number(line))
            return True
        if b"pt-xla-profiler" not in line and b"Dynamo fallback ops" not in line:
            return False
        process = self._console.process_behind(tag)
        self._console.tally.formats.add("torch-xla")
        self.seen = True
        fallback = _FALLBACK.search(line)
        if fallback is not None:
            self._add_ops("dynamo", fallback["ops"], process, line)
            return True
        if _UNLOWERED in line:
            ops = line.partition(_UNLOWERED)[2].partition(b"Please ")[0]
            self._add_ops("profiler", ops, process, line)
            return True
        if line.startswith(b"WARNING:"):
            summary = _SUMMARY.match(line)
            return summary is not None and self._summary(summary["text"], line, process, tag)
        note = _PROFILER.search(line)
        if note is not None and note["text"].strip():
            self._add_note(process, plain(note["text"].strip())[:300])
        return note is not None

    def _summary(self, text: bytes, line: bytes, process: ConsoleProcess, tag: Tag) -> bool:
        """A line of the summary at the end, in Python's own format."""
        begun = _COUNT.search(text)
        if begun is not None:
            self._close_caller(tag.text)
            number = self._console.line_number(line)
            self._callers[tag.text] = _Caller(process, int(begun["count"]), number)
            return True
        caller = self._callers.get(tag.text)
        if caller is None:
            return True
        named = _NAMED.search(text)
        found = FRAME.match(plain(text)) if named is None else None
        if named is not None:
            caller.op = plain(named["op"])
        elif found is not None and len(caller.frames) < _MOST_FRAMES:
            frame = make_frame(found["file"], int(found["line"]), found["name"])
            caller.frames = (*caller.frames, frame)
        elif text.startswith(b"===="):
            self._close_caller(tag.text)
        return True

    def _close_caller(self, tag: bytes) -> None:
        caller = self._callers.pop(tag, None)
        if caller is None:
            return
        named = caller.op.partition(" ")[0]
        ops = () if named in _ANY_OPERATOR or not named else (named,)
        if ops or caller.frames:
            self._add(
                ("profiler", ops, recast(reversed(caller.frames))),
                caller.process,
                caller.line,
                caller.count,
            )

    def _add_note(self, process: ConsoleProcess, text: str) -> None:
        key = _NUMBER.sub("N", text)
        if key in self._notes or len(self._notes) < _MOST_NOTES:
            count = self._notes[key][2] if key in self._notes else 0
            self._notes[key] = (process, text, count + 1)

    def _add_ops(self, told_by: _Teller, text: bytes, process: ConsoleProcess, line: bytes) -> None:
        ops = tuple(sorted({plain(op) for op in _OP.findall(text[:20_000])}))
        if ops:
            self._add((told_by, ops, ()), process, self._console.line_number(line), 1)

    def _add(self, key: _Key, process: ConsoleProcess, line: int, count: int) -> None:
        self._told(key, process, line).count += count

    def _told(self, key: _Key, process: ConsoleProcess, line: int) -> _OperatorMention:
        told = self._ops.get((process.rank, process.pid, key))
        if told is None:
            told = _OperatorMention(process, line)
            if len(self._ops) < _MOST_SETS:
                self._ops[process.rank, process.pid, key] = told
        return told

    def _add_counter(self, op: str, value: int, line: int, tag: Tag) -> None:
        """Counters only grow, so the last report of several counts."""
        self._console.tally.formats.add("torch-xla")
        process = self._console.process_behind(tag)
        process.unstamped = True
        self._told(("counter", (op,), ()), process, line).count = value

    @property
    def waiting(self) -> bool:
        """For the value of a counter."""
        return bool(self._counters)

    def finish(self) -> None:
        for tag in list(self._callers):
            self._close_caller(tag)
        source = self._console.source.name
        for (_, _, (told_by, ops, stack)), told in self._ops.items():
            body = FallbackOps(ops, told_by, told.count, source, told.line)
            self._console.event(told.process, body, stack=stack)
        for process, text, count in self._notes.values():
            self._console.event(process, LogLine("torch_xla", "warning", text, count))
