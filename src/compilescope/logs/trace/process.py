"""What is known of one process while its trace is read. Bounded, however long the trace is.

Its clock, its strings, its code objects, the compilations that are under way; what a finished
compilation leaves behind is small.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import date as Date
from typing import TYPE_CHECKING

import msgspec

from compilescope.base.patterns import late
from compilescope.logs.format import LogSource, Writer
from compilescope.logs.trace.phases import Phases
from compilescope.logs.trace.record import StackFrame, TraceRecord
from compilescope.logs.words.tracebacks import make_frame
from compilescope.record.bodies import Body, CacheEntryMiss, GraphBreak, Unknown
from compilescope.record.guards import WholeFiles
from compilescope.record.logged import TraceRecords
from compilescope.record.stack import CodeRef, Frame, plain_function_name

if TYPE_CHECKING:
    from compilescope.logs.words.break_words import BreakWords
    from compilescope.logs.words.failed_guards import GuardLines


# Chosen: bounds for memory; the oldest go first.
_GUARD_BYTES = 16 << 20
_MOST_LINES = 16
_MOST_COMPILATIONS = 50_000
_EVAL_FRAME = "_dynamo/eval_frame.py"
_NO_STRING = "<unknown>"
_PYTHON = late(r"[/\\]python3\.(\d{1,3})[/\\]")


class TracedCompilation(msgspec.Struct):
    """One compile id of one process, attempts together."""

    code: CodeRef | None = None
    callers: tuple[Frame, ...] = ()
    """The user's stack outside the frame that is compiled."""
    region: CodeRef | None = None
    breaks: list[tuple[str, GraphBreak]] = msgspec.field(default_factory=list)
    """Event id and body of those since its start."""
    misses: list[CacheEntryMiss] = msgspec.field(default_factory=list)
    symbols: dict[str, str] = msgspec.field(default_factory=dict)
    """Source -> the value that its symbol stands for."""
    error_text: bytes = b""
    provenance: bytes = b""
    done: bool = False

    def end(self) -> None:
        """Only what a backward compilation will ask for stays."""
        self.breaks, self.misses, self.symbols = [], [], {}
        self.error_text = self.provenance = b""
        self.done = True


class TracedProcess:
    """The reader's memory of one process."""

    def __init__(self, writer: Writer, source: LogSource, pid: int) -> None:
        self.writer = writer
        self.source = source
        self.pid = pid
        self.rank = source.rank or 0
        self.epoch = 0
        self.clock = TraceClock(source.modified_ns)
        self.phases = Phases()
        self.kept = KeptRecords(self)
        self.strings: dict[int, str] = {}
        self.files = WholeFiles(self.strings.values())
        self.compilations: OrderedDict[str, TracedCompilation] = OrderedDict()
        self._first_lines: dict[tuple[str, str], list[int]] = {}
        self._regions: dict[CodeRef, CodeRef] = {}
        self._guards: OrderedDict[str, bytes] = OrderedDict()
        self._guard_bytes = 0
        self._guard_lines: dict[str, GuardLines] = {}
        self.break_words: dict[tuple[str | None, CodeRef | None], BreakWords] = {}
        self.configs: dict[bytes, str] = {}
        """Configurations, which every compilation repeats to the letter, and their artifacts."""
        self._names: dict[tuple[str, str], str] = {}
        self.last_ns = 0
        self.told_version = False
        self.has_columns: bool | None = None
        """Do its tracebacks tell columns? None: not known."""

    def intern(self, number: int, text: str) -> None:
        self.strings[number] = text
        if self.has_columns is None and (found := _PYTHON.search(text)):
            self.has_columns = int(found[1]) >= 11

    def emit(
        self,
        record: TraceRecord,
        body: Body | Unknown,
        stack: Sequence[Frame] = (),
        *,
        attempt: bool = True,
    ) -> str:
        return self.writer.event(
            body,
            time_ns=record.time_ns,
            pid=self.pid,
            rank=self.rank,
            compile_id=record.compile_id if attempt else record.compilation,
            stack=stack,
            epoch=self.epoch,
        )

    def payload(self, record: TraceRecord, kind: str) -> str:
        """The name of the artifact that holds the record's payload."""
        digest = record.line.has_payload
        if not digest:
            return self.writer.artifact(record.text(), kind)
        # The trace itself says which payloads are equal: one that is known is not looked at again.
        name = self._names.get((digest, kind))
        if name is None:
            name = self.writer.artifact(record.text(), kind)
            if len(self._names) > _MOST_COMPILATIONS:
                self._names.clear()
            self._names[digest, kind] = name
        return name

    def compilation(self, record: TraceRecord) -> TracedCompilation:
        key = record.compilation or ""
        found = self.compilations.get(key)
        if found is None:
            found = self.compilations[key] = TracedCompilation()
            if len(self.compilations) > _MOST_COMPILATIONS:
                self.compilations.popitem(last=False)
        return found

    def begin(self, record: TraceRecord) -> TracedCompilation:
        """A compilation starts. An id that comes again means that Dynamo was reset."""
        key = record.compilation or ""
        known = self.compilations.get(key)
        if known is not None and record.attempt == 0 and (known.code is not None or known.done):
            self.epoch += 1
            self.compilations.clear()
            self._guards.clear()
            self._guard_lines.clear()
            self._guard_bytes = 0
        return self.compilation(record)

    def frames(self, stack: Iterable[StackFrame]) -> list[Frame]:
        return [
            make_frame(self.file(frame.filename), frame.line or 0, frame.name, frame.loc or "")
            for frame in stack
        ]

    def file(self, number: int | str) -> str:
        if isinstance(number, str):
            return number
        return self.strings.get(number, _NO_STRING)

    def code(self, file: str, first_line: int, name: str) -> CodeRef:
        """The code object as its author knows it: a resume function is the function it resumes."""
        plain = plain_function_name(name)
        lines = self._first_lines.setdefault((file, plain), [])
        at = bisect_right(lines, first_line)
        if plain == name:
            if not at or lines[at - 1] != first_line:
                lines.insert(at, first_line)
            return CodeRef(file, first_line, name)
        return CodeRef(file, lines[at - 1] if at else first_line, plain, resumed_at=first_line)

    def code_at(self, frame: Frame) -> CodeRef:
        """The code object that a frame of a stack runs: its first line, where it is known."""
        lines = self._first_lines.get((frame.file, frame.function), [])
        at = bisect_right(lines, frame.line)
        return CodeRef(frame.file, lines[at - 1] if at else frame.line, frame.function)

    def is_compiled(self, frame: Frame) -> bool:
        return (frame.file, frame.function) in self._first_lines

    def region_of(self, callers: Sequence[Frame], code: CodeRef) -> CodeRef | None:
        """The outermost function under the innermost entry into compiled code.

        Some entries leave no frame of torch's in the stack; then it is the outermost function that
        was compiled itself. None: `code` is the entry, as far as these frames tell.
        """
        base = CodeRef(code.file, code.line, code.function)
        entries = [n for n, f in enumerate(callers) if f.file.endswith(_EVAL_FRAME)]
        inside = callers[entries[-1] + 1 :] if entries else callers
        region = None
        for frame in inside:
            if self.is_compiled(frame) or (entries and frame.origin in ("user", "library")):
                region = self.code_at(frame)
                break
        # torch 2.13 drops the innermost callers from the start of some compilations.
        known = self._regions.get(base)
        if region is None or region == base:
            return known or (base if code.resumed else None)
        self._regions.setdefault(base, region)
        return region

    def keep_guards(self, compilation: str, text: bytes) -> None:
        self._guard_lines.pop(compilation, None)
        self._guards[compilation] = text
        self._guard_bytes += len(text)
        while self._guard_bytes > _GUARD_BYTES and len(self._guards) > 1:
            _, old = self._guards.popitem(last=False)
            self._guard_bytes -= len(old)

    def guard_lines(self, compilation: str) -> GuardLines:
        """The guards of an earlier compilation; none where it is too long ago."""
        found = self._guard_lines.get(compilation)
        if found is None:
            from compilescope.logs.words.failed_guards import GuardLines

            found = GuardLines(self._guards.get(compilation, b"").decode("utf-8", "replace"))
            if len(self._guard_lines) >= _MOST_LINES:
                self._guard_lines.pop(next(iter(self._guard_lines)))
            self._guard_lines[compilation] = found
        return found


_BYTES = 1 << 18
"""Of strings that are kept before they are written. Chosen: a bound for memory."""
_BYTECODE = late(r"^.+_(ORIGINAL|MODIFIED)_BYTECODE(?:_\w{1,100})?$", re.S)
_LONGEST_NAME = 100
"""Of a kind of record. Chosen: torch's own are shorter than half of it."""


class KeptRecords:
    """Records that become no event of their own: kept as they are, many in one artifact."""

    def __init__(self, process: TracedProcess) -> None:
        self._process = process
        self._lines: list[bytes] = []
        self._size = 0
        self._kinds: dict[str, int] = {}
        self._last: TraceRecord | None = None

    def add(self, record: TraceRecord, name: str, kind: str | None = "txt") -> None:
        """With its payload, unless another event has that."""
        if self._last is not None and self._last.compilation != record.compilation:
            self.flush()
        payload = self._process.payload(record, kind) if kind and record.payload else ""
        self._lines.append(b'{"payload":"%s","record":%s}' % (payload.encode(), record.json))
        self._size += len(record.json)
        name = short_name(name)
        self._kinds[name] = self._kinds.get(name, 0) + 1
        self._last = record
        if self._size > _BYTES:
            self.flush()

    def flush(self) -> None:
        if self._last is None:
            return
        process = self._process
        artifact = (
            process.writer.artifact(b"\n".join(self._lines), "jsonl") if self._lines else None
        )
        process.emit(self._last, TraceRecords(self._kinds, artifact), attempt=False)
        self._lines, self._size, self._kinds, self._last = [], 0, {}, None


def short_name(name: str) -> str:
    """Bytecode is named for the user's function; which one, its record tells."""
    found = _BYTECODE.match(name)
    return f"{found[1]}_BYTECODE" if found else name[:_LONGEST_NAME]


_QUARTER_S = 900
"""Time zones differ by multiples of a quarter of an hour."""
_DAY_NS = 86_400_000_000_000
_EPOCH = Date(1970, 1, 1).toordinal()


class TraceClock:
    """The clock of one process. Where a record tells the true time, the zone is known from it."""

    def __init__(self, modified_ns: int) -> None:
        self._modified_ns = modified_ns
        self._year = time.gmtime(modified_ns // 10**9).tm_year
        self._offset_s = -time.timezone
        self._known = False
        self._last = (b"", 0)

    def read(self, stamp: bytes, fraction: bytes) -> int:
        """`MMDD HH:MM:SS` and the digits after the point."""
        if stamp != self._last[0]:
            self._last = (stamp, self._seconds(stamp) * 10**9)
        return self._last[1] + int(fraction[:9].ljust(9, b"0"))

    def settle(self, stamp: bytes, true_us: float) -> None:
        """The record of this stamp says that it was written at `true_us`."""
        if self._known or not 0 < true_us < 1e16:
            return
        self._known = True
        self._year = time.gmtime(true_us / 1e6).tm_year
        apart = self._seconds(stamp, 0) - true_us / 1e6
        self._offset_s = round(apart / _QUARTER_S) * _QUARTER_S
        self._last = (b"", 0)

    def _seconds(self, stamp: bytes, offset: int | None = None) -> int:
        day, _, clock = stamp.partition(b" ")
        month, date = int(day[:2]), int(day[2:])
        hour, minute, second = (int(part) for part in clock.split(b":"))
        month, date = min(max(month, 1), 12), max(date, 1)

        def in_year(year: int) -> int:  # As `calendar.timegm`, which takes longer to import.
            days = Date(year, month, 1).toordinal() - _EPOCH + date - 1
            return ((days * 24 + hour) * 60 + minute) * 60 + second

        seconds = in_year(self._year) - (self._offset_s if offset is None else offset)
        # Written in December, read in January.
        if not self._known and seconds * 10**9 > self._modified_ns + 2 * _DAY_NS:
            seconds = in_year(self._year - 1) - self._offset_s
        return max(seconds, 0)
