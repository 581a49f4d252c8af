"""The reader of TORCH_LOGS text: lines into records, records to the process that wrote them.

It also tells by those lines which settings of TORCH_LOGS must have been on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from compilescope.logs.format import ReadTally
from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.custom import GUARDS, MARKERS, TRACE, Prefixes, ends, find_start
from compilescope.logs.text.dynamo.process import DynamoProcess, wanted
from compilescope.logs.text.dynamo.record import LogRecord
from compilescope.logs.text.dynamo.skips import Errors
from compilescope.logs.text.lines import INNER_TORCH, TORCH, UNTAGGED, Tag, read_tags

_FIRST_BYTES = frozenset(b"VIWEC[( 0123456789")
_TRACE = b"[__trace_"
_MOST_STREAMS = 4096
"""Chosen: as many as processes."""
_MARKERS = (
    b"Traceback (most recent call last)",
    b"torchdynamo start ",
    b"raph break ",
    b"Recompiling function ",
    b"calling compiler function ",
    b"torch._dynamo hit config.",
    b"TREE_GUARD_MANAGER:",
    b".py:",
)
_MARKERS_BESIDE = (b"Traceback (most recent call last)", b".py:")
"""In lines between those that have torch's prefix."""
_BEGINNINGS = tuple(marker for marker in MARKERS if marker != GUARDS)
_MARKER_STARTS = frozenset(marker[:1] for marker in MARKERS)


@dataclass
class _Stream:
    """The lines of one process."""

    process: ConsoleProcess
    dynamo: DynamoProcess
    prefix: bytes = b"\n"
    """Of the record that is open; no line begins with a newline."""
    record: LogRecord | None = None
    """None where nothing is to be learnt from the one that is open."""


@dataclass
class _Custom:
    """The lines of one process under a custom format."""

    stream: _Stream
    record: LogRecord | None = None
    prefixes: Prefixes = field(default_factory=Prefixes)


class TorchLogsReader:
    """The state of reading one log."""

    def __init__(self) -> None:
        self.heads: set[bytes] = set()
        self.noise: tuple[bytes, ...] = (_TRACE,)
        self.markers: tuple[bytes, ...] = _MARKERS
        self._console: Console
        self._streams: dict[tuple[bytes, int], _Stream] = {}
        self._last: _Stream | None = None
        self._tags: dict[bytes, Tag] = {}
        self._customs: dict[bytes, _Custom] = {}
        self._evidence = Evidence()
        self._stamped = False

    def attach(self, console: Console) -> None:
        self._console = console
        self._errors = Errors(console)

    def skipped(self, lines: int) -> None:
        self._evidence.traced = True

    @property
    def busy(self) -> bool:
        return self._errors.busy or any(custom.record for custom in self._customs.values())

    # torch's own prefix

    def run_stamped(self, lines: Sequence[bytes], start: int) -> int:
        last = self._last
        prefix = last.prefix if last is not None else b"\n"
        match, first_bytes = TORCH.match, _FIRST_BYTES
        for at in range(start, len(lines)):
            line = lines[at]
            if line.startswith(prefix):
                if last is not None and last.record is not None:
                    self._go_on(last, line[len(prefix) :])
                continue
            if not line or line[0] not in first_bytes:
                return at
            found = match(line)
            if found is None:
                return at
            last = self._begin(found, line)
            prefix = last.prefix
        return len(lines)

    def _go_on(self, stream: _Stream, message: bytes) -> None:
        record = stream.record
        assert record is not None
        # Two calls within a millisecond share their prefix.
        if message[:1] in _MARKER_STARTS and message.startswith(_BEGINNINGS):
            self._end(stream)
            stream.record = self._renewed(record, message)
        else:
            record.add(message)

    def _renewed(self, old: LogRecord, message: bytes) -> LogRecord | None:
        level = old.level.encode()
        if not wanted(old.artifact, message, level):
            return None
        return LogRecord(old.level, old.time_ns, old.compile_id, old.artifact, message)

    def _begin(self, found: re.Match[bytes], line: bytes) -> _Stream:
        tags, level, date, clock, pid, where, compile_id, artifact = found.groups()
        stream = self._stream(tags, int(pid))
        prefix = line[: found.end()]
        if prefix[-1:] != b" ":
            prefix += b" "
        message = line[found.end() :]
        self._last = stream
        if stream.prefix == prefix and stream.record is not None:
            self._go_on(stream, message)
            return stream
        self._end(stream)
        stream.prefix = prefix
        name = artifact.decode() if artifact else ""
        if not tags:
            self.heads.add(line[:6])
        if not self._stamped:
            self._stamped = True
            self.markers = _MARKERS_BESIDE
        self._evidence.line(level, where, name)
        if not wanted(name, message, level):
            return stream
        time_ns = self._console.clock.torch_ns(date, clock)
        if time_ns is None:
            time_ns = stream.process.now_ns
        stream.record = LogRecord(
            level.decode(),
            max(time_ns, stream.process.now_ns),
            compile_id.decode() if compile_id else None,
            name,
            message,
        )
        return stream

    def _stream(self, tags: bytes, pid: int) -> _Stream:
        tag = UNTAGGED
        if tags:
            found = self._tags.get(tags)
            tag = found if found is not None else read_tags(tags)
            if found is None and len(self._tags) < _MOST_STREAMS:
                self._tags[tags] = tag
        key = (tag.text, pid)
        stream = self._streams.get(key)
        if stream is None and len(self._streams) >= _MOST_STREAMS:
            return next(iter(self._streams.values()))  # No program has so many processes.
        process = self._console.process_of(tag, pid)
        if stream is None:
            stream = _Stream(process, DynamoProcess(self._console, process))
            self._streams[key] = stream
        return stream

    def _end(self, stream: _Stream) -> None:
        """The open record is whole."""
        record, stream.record = stream.record, None
        if record is None:
            return
        tally = self._console.tally
        tally.formats.add("torch-logs")
        if stream.dynamo.record(record):
            tally.records += 1
        else:
            tally.lose(record.first)

    # Everything else

    def line(self, line: bytes, tag: Tag) -> bool:
        if self._stamped:
            return self._beside(line, tag)
        custom = self._customs.get(tag.text)
        if custom is not None and custom.record is not None:
            return self._custom_line(custom, line)
        if self._errors.line(line, tag):
            return True
        start = custom.prefixes.start(line) if custom is not None else find_start(line)
        if start is None:
            return self._custom_noise(custom, line)
        if custom is None:
            process = self._console.process_behind(tag)
            custom = _Custom(_Stream(process, DynamoProcess(self._console, process)))
            self._customs[tag.text] = custom
            self.markers = (b"",)  # From here on any line may be of a record.
            self._streams[tag.text, -1] = custom.stream
        self._begin_custom(custom, line, *start)
        return True

    def _beside(self, line: bytes, tag: Tag) -> bool:
        """Among lines with torch's own prefix: one that follows what a program printed, or the
        traceback of an exception that ended it."""
        if b".py:" in line and b"] " in line:
            inner = INNER_TORCH.search(line)
            if inner is not None and inner.start() > 0:
                found = TORCH.match(line[inner.start() :])
                if found is not None:
                    self._begin(found, line[inner.start() :])
                    return True
        return self._errors.line(line, tag)

    def _custom_noise(self, custom: _Custom | None, line: bytes) -> bool:
        if custom is not None and not self._evidence.traced and TRACE.search(line[:400]):
            self._evidence.traced = True
        return False

    def _begin_custom(self, custom: _Custom, line: bytes, at: int, artifact: str) -> None:
        stream = custom.stream
        if custom.prefixes.learn(line[:at]):
            self.noise = (_TRACE, *custom.prefixes.noise())
        self._evidence.custom(line[:at], artifact)
        record = LogRecord("", stream.process.now_ns, None, artifact, line[at:])
        custom.record = record if wanted(artifact, record.first, b"W") else None

    def _custom_line(self, custom: _Custom, line: bytes) -> bool:
        record = custom.record
        assert record is not None
        start = custom.prefixes.start(line)
        guards = start is not None and start[1] == "guards" and record.artifact == "guards"
        goes_on = not custom.prefixes.begins(line) and not ends(record, line)
        if (start is None or guards) and goes_on:
            record.add(line)
            return True
        self._end_custom(custom)
        if start is not None:
            self._begin_custom(custom, line, *start)
            return True
        return self._errors.line(line, UNTAGGED)

    def _end_custom(self, custom: _Custom) -> None:
        stream = custom.stream
        stream.record, custom.record = custom.record, None
        self._end(stream)

    def run(self, lines: Sequence[bytes], start: int) -> int:
        return start

    def _tell_cuts(self, stream: _Stream) -> None:
        tally, process = self._console.tally, stream.process
        if stream.dynamo.cut_head:
            tally.cut_head = True
        if stream.dynamo.cut_tail:
            tally.cut_tail = True
            self._console.writer.cut(pid=process.pid, rank=process.rank)

    def finish(self) -> None:
        for custom in self._customs.values():
            self._end_custom(custom)
        for stream in self._streams.values():
            self._end(stream)
            stream.dynamo.finish()
            self._tell_cuts(stream)
        self._errors.finish()
        self._evidence.tell(self._console.tally)


_WITH_DYNAMO = frozenset(
    {
        "graph_breaks",
        "guards",
        "graph_code",
        "trace_source",
        "trace_call",
        "trace_bytecode",
        "side_effects",
        "graph_sizes",
        "not_implemented",
    }
)
"""Artifacts that `+dynamo` brings by itself."""
_DYNAMO = (b"torch/_dynamo/", b"torch/fx/experimental/symbolic_shapes.py")


class Evidence:
    """What was seen of one log."""

    def __init__(self) -> None:
        self.traced = False
        """Lines of the tracer: only `+dynamo` has them."""
        self._artifacts: set[str] = set()
        self._debug: set[str] = set()
        self._info: set[str] = set()
        self._format = False

    def line(self, level: bytes, where: bytes, artifact: str) -> None:
        if artifact:
            self._artifacts.add(artifact)
        elif level == b"V":
            self._debug.add(_component(where))
        elif level == b"I":
            self._info.add(_component(where))

    def custom(self, prefix: bytes, artifact: str) -> None:
        self._format = True
        if artifact:
            self._artifacts.add(artifact)
        elif b"DEBUG" in prefix:
            self._debug.add("dynamo")
        elif b"INFO" in prefix:
            self._info.add("dynamo")

    def tell(self, tally: ReadTally) -> None:
        parts: list[str] = []
        if self.traced or "dynamo" in self._debug:
            parts.append("+dynamo")
        elif "dynamo" in self._info:
            parts.append("dynamo")
        parts += sorted(f"+{name}" for name in self._debug - {"dynamo", ""})
        parts += sorted(self._info - self._debug - {"dynamo", ""})
        extra = self._artifacts - (_WITH_DYNAMO if "+dynamo" in parts else set())
        parts += sorted(extra)
        if parts:
            tally.flags.add("TORCH_LOGS=" + ",".join(parts))
            if self._format:
                tally.flags.add("TORCH_LOGS_FORMAT")


def _component(where: bytes) -> str:
    """The log that a file of torch belongs to."""
    if where.startswith(_DYNAMO):
        return "dynamo"
    if where.startswith((b"torch/_functorch/", b"torch/_aot")):
        return "aot"
    if where.startswith(b"torch/_inductor/"):
        return "inductor"
    if where.startswith(b"torch/distributed/"):
        return "distributed"
    return ""
