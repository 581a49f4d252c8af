"""The reader of what torch_xla writes to the console, or to PT_XLA_DEBUG_FILE.

Blocks of PT_XLA_DEBUG_LEVEL, dumps, and what PT_XLA_DEBUG=1 adds: metrics reports, and operators
without a lowering, each with the line that calls it and how often.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compilescope.logs.text.console import Announced, Console, ConsoleProcess
from compilescope.logs.text.dynamo.frames import recast
from compilescope.logs.text.lines import UNTAGGED, Tag, plain
from compilescope.logs.text.xla.blocks import FRAME, PREFIX, XlaBlock, is_rule, read_block
from compilescope.logs.text.xla.dumps import Dumps
from compilescope.logs.words.tracebacks import make_frame
from compilescope.record.bodies import FallbackOps, GraphCompiled, GraphExecuted, LogLine
from compilescope.record.stack import Frame

_HASH = re.compile(rb"Computation hash: (?P<hash>[0-9a-fA-F]{1,64})\s*$")
_ANALYSIS = b" Analysis: "
_PREFIXES = {
    (kind + _ANALYSIS)[:10]: kind + _ANALYSIS
    for kind in (b"Compilation", b"Execution", b"Post Compilation", b"Unexpected Execution")
}
# Chosen: bounds for memory; what a program does in each step comes again.
_MOST = 20_000
_MOST_LINES = 5000
"""Of one block; PT_XLA_DEBUG_MAX_FRAME sets how many frames it has. Chosen: a bound for memory."""
_MOST_KNOWN = 2000
"""Different blocks that are read once only; later ones are read each time. Chosen: likewise."""
_RunKey = tuple[int, int, str, str, tuple[Frame, ...]]


@dataclass
class _Counted:
    process: ConsoleProcess
    time_ns: int
    count: int = 0


@dataclass
class _Open:
    """A block as far as it has come."""

    prefix: bytes
    lines: list[bytes]
    headless: bool = False
    whole: XlaBlock | None = None
    """What it was, once it is whole and may come again."""


class XlaReader:
    """The state of reading one log."""

    noise: tuple[bytes, ...] = ()
    markers = (
        b" Analysis: ",
        b"pt-xla-profiler",
        b"Dynamo fallback ops",
        b"## BEGIN_GRAPH",
        b"HloModule ",
        b"Counter: aten::",
    )

    def __init__(self) -> None:
        self._console: Console
        self._open: dict[bytes, _Open] = {}
        self._below: dict[bytes, bytes] = {}
        """Blocks of which only the last rule is still to come."""
        self._known: dict[bytes, XlaBlock] = {}
        self._last: dict[bytes, tuple[list[bytes], XlaBlock]] = {}
        self._runs: dict[_RunKey, _Counted] = {}
        self._levels: set[str] = set()

    def attach(self, console: Console) -> None:
        self._console = console
        self._dumps = Dumps(console)
        self._extras = Extras(console)

    def skipped(self, lines: int) -> None:
        """Noise is not of this format."""

    @property
    def busy(self) -> bool:
        return bool(self._open) or self._dumps.busy or self._extras.waiting

    def run(self, lines: Sequence[bytes], start: int) -> int:
        if self._dumps.busy:
            return self._dumps.run(lines, start)
        held = self._open.get(b"")
        at, end, began = start, len(lines), start
        while at < end:
            line = lines[at]
            at += 1
            if not line:
                continue
            prefix = _PREFIXES.get(line[:10])
            if prefix is None or not line.startswith(prefix):
                return at - 1
            rest = line[len(prefix) :]
            if rest[:4] not in (b"====", b"----") and held is not None and held.prefix == prefix:
                if len(held.lines) < _MOST_LINES:
                    held.lines.append(rest)
                continue
            # Blocks of executions are the same at every step: one look at all of it.
            last = self._last.get(prefix) if held is None else None
            if last is not None and lines[at - 1 : at - 1 + len(last[0])] == last[0]:
                self._tell(UNTAGGED, last[1])
                at += len(last[0]) - 1
                continue
            self._block_line(prefix, rest, UNTAGGED)
            closed, held = held, self._open.get(b"")
            if held is not None and not held.lines:
                began = at - 1
            elif closed is not None and closed.whole is not None and at < end:
                self._last[prefix] = (list(lines[began : at + 1]), closed.whole)
        return end

    def line(self, line: bytes, tag: Tag) -> bool:
        if self._dumps.line(line, tag):
            return True
        at = line.find(b" Analysis: ", 0, 400)
        if at >= 0:
            found = PREFIX.search(line)
            # What a program printed without a newline may stand before it.
            if found is not None:
                self._block_line(found["kind"] + _ANALYSIS, found["rest"], tag)
                return True
        if line.startswith(b"Computation hash: ") and _HASH.match(line):
            return True
        return self._extras.line(line, tag)

    def _block_line(self, prefix: bytes, rest: bytes, tag: Tag) -> None:
        held = self._open.get(tag.text)
        rule = is_rule(rest)
        if held is not None and held.prefix != prefix:
            self._broken(tag, held)
            held = None
        if held is None:
            if rule == "=" and self._below.pop(tag.text, b"") == prefix:
                return  # The rule below a block.
            if rule == "=" or not rule:
                self._open[tag.text] = held = _Open(prefix, [])
            if not rule and held is not None:
                held.headless = True
                held.lines.append(rest)
                self._console.tally.cut_head |= not self._levels
            return
        if not rule:
            if len(held.lines) < _MOST_LINES:
                held.lines.append(rest)
        elif rule == "-":
            del self._open[tag.text]
            self._below[tag.text] = prefix
            self._close(tag, held)
        elif held.lines:
            # Another begins where the last had no end.
            self._broken(tag, held)
            self._open[tag.text] = _Open(prefix, [])

    def _broken(self, tag: Tag, held: _Open) -> None:
        """Cut off, or mixed with another's: what is there is still told."""
        self._open.pop(tag.text, None)
        if held.lines:
            self._console.tally.lose(held.prefix + b"(a block without its end)")
            self._close(tag, held)

    def _read(self, held: _Open) -> XlaBlock:
        """Blocks of executions are the same at every step."""
        kind = plain(held.prefix.removesuffix(_ANALYSIS))
        text = held.prefix + b"\n".join(held.lines)
        block = self._known.get(text)
        if block is None:
            block = read_block(kind, held.lines)
            if len(self._known) < _MOST_KNOWN:
                self._known[text] = block
        return block

    def _close(self, tag: Tag, held: _Open) -> None:
        block = self._read(held)
        if block.kind != "Compilation" and not held.headless:
            held.whole = block
        self._tell(tag, block, headless=held.headless)

    def _tell(self, tag: Tag, block: XlaBlock, *, headless: bool = False) -> None:
        process = self._console.process_behind(tag)
        self._console.tally.formats.add("torch-xla")
        self._console.tally.records += 1
        self._levels.add(block.kind)
        if block.kind == "Compilation":
            self._console.announce(process, _announced(block, process, headless))
        elif block.kind == "Post Compilation":
            self._console.settle(process)
        elif block.kind in ("Execution", "Unexpected Execution"):
            self._console.settle(process)
            self._count(process, block)

    def _count(self, process: ConsoleProcess, block: XlaBlock) -> None:
        key = (process.rank, process.pid, block.hash, block.cause, block.stack)
        counted = self._runs.get(key)
        if counted is None:
            if len(self._runs) >= _MOST:
                return
            counted = self._runs[key] = _Counted(process, process.now_ns)
        counted.count += 1

    def finish(self) -> None:
        tally = self._console.tally
        for text, held in list(self._open.items()):
            tally.cut_tail = tally.cut_tail or bool(held.lines)
            self._broken(Tag(text), held)
        self._dumps.finish()
        for key, counted in self._runs.items():
            body = GraphExecuted(key[2], key[3], counted.count)
            self._console.event(counted.process, body, stack=key[4], time_ns=counted.time_ns)
        self._extras.finish()
        if self._extras.seen:
            tally.flags.add("PT_XLA_DEBUG=1")
        elif self._levels & {"Execution"}:
            tally.flags.add("PT_XLA_DEBUG_LEVEL=2")
        elif self._levels:
            tally.flags.add("PT_XLA_DEBUG_LEVEL=1")


def _announced(block: XlaBlock, process: ConsoleProcess, headless: bool) -> Announced:
    return Announced(
        GraphCompiled(
            "torch_xla",
            name=block.name,
            hash=block.hash,
            cause=block.cause,
            inputs=block.inputs,
            outputs=block.outputs,
            after=process.handed,
            backend=process.backend,
            cut="head" if headless else "",
        ),
        block.stack,
        process.now_ns,
    )


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
_MentionKey = tuple[_Teller, tuple[str, ...], tuple[Frame, ...]]


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
        self._ops: dict[tuple[int, int, _MentionKey], _OperatorMention] = {}
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

    def _add(self, key: _MentionKey, process: ConsoleProcess, line: int, count: int) -> None:
        self._told(key, process, line).count += count

    def _told(self, key: _MentionKey, process: ConsoleProcess, line: int) -> _OperatorMention:
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
