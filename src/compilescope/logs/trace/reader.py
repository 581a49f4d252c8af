"""Reads a trace record by record, in blocks, and hands each kind to what understands it.

One pass; a record is held only until the next one begins. A line that is no record and no payload
is not ours: it goes back to the caller, for the formats of text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec

from compilescope.base.patterns import late
from compilescope.logs.format import LogSource, Writer
from compilescope.logs.trace import causes, frames, graphs
from compilescope.logs.trace.phases import ReadyEvent
from compilescope.logs.trace.process import TracedProcess
from compilescope.logs.trace.record import ENVELOPE, HEAD, TraceLine, TraceRecord
from compilescope.record.bodies import Unknown

_LINE_START = late(rb"\n(?!\t)")
# Chosen: bounds for files of any content.
_LARGEST_RECORD = 1 << 26
_MOST_RANKS = 10_000_000
_MOST_PROCESSES = 4096
_SAMPLE = 200
_CUT_HEAD = late(rb"[VIWEC](?:\d{1,4}|\d{4} [^\n]{0,1000})?\Z")
"""The beginning of a record that nothing follows, not even a newline."""
_CHROMIUM = b"chromium_event"
_decode = msgspec.json.Decoder(TraceLine).decode
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Handler = Callable[[TracedProcess, TraceRecord], None]


class TraceReader:
    """The reader of `formats.torch_trace`."""

    def __init__(self, writer: Writer, source: LogSource) -> None:
        self._writer = writer
        self._source = source
        self._tally = source.tally
        self._processes: dict[int, TracedProcess] = {}
        self._current: TracedProcess | None = None
        self._rest = b""
        """The last record, which may go on in the next block."""
        self._skipping = False
        """Within a record of which enough has been seen."""

    def feed(self, block: bytes) -> bytes:
        if self._skipping:
            block = self._skip(block)
        data = self._rest + block if self._rest else block
        starts = [found.end() for found in _LINE_START.finditer(data)]
        if data[:1] != b"\t":
            starts.insert(0, 0)
        elif data:
            # Payload whose record was cut off before the beginning of this log.
            self._tally.cut_head = True
            self._tally.lose(data[: starts[0] if starts else len(data)])
        while starts and starts[-1] >= len(data):
            starts.pop()
        if not starts:
            self._rest = b""
            return b""
        foreign = self._read_all(data, starts)
        self._rest = data[starts[-1] :]
        if HEAD.match(self._rest) is None:
            if self._processes and _CUT_HEAD.match(self._rest):
                self._tally.cut_tail = True
                self._tally.lose(self._rest)
            else:
                foreign.append(self._rest)
            self._rest = b""
        elif len(self._rest) > _LARGEST_RECORD:
            self._read(self._rest, 0, len(self._rest))
            self._tally.cut_lines += 1
            self._rest, self._skipping = b"", True
        return b"".join(foreign)

    def _skip(self, block: bytes) -> bytes:
        """Past the rest of a record that is too large."""
        if block[:1] != b"\t":
            self._skipping = False
            return block
        found = _LINE_START.search(block)
        if found is None or found.end() >= len(block):
            return b""
        self._skipping = False
        return block[found.end() :]

    def _read_all(self, data: bytes, starts: list[int]) -> list[bytes]:
        """All but the last; what is not ours comes back."""
        foreign: list[bytes] = []
        read = self._read
        for start, end in itertools.pairwise(starts):
            if not read(data, start, end):
                foreign.append(data[start:end])
        return foreign

    def finish(self) -> bytes:
        rest, self._rest = self._rest, b""
        back = b""
        if rest:
            if not rest.endswith(b"\n"):
                # torch ends every record with a newline.
                self._tally.cut_tail = True
            if not self._read(rest, 0, len(rest)):
                back = rest
        for process in self._processes.values():
            for written in process.phases.finish():
                self._write_phases(process, written)
            process.kept.flush()
            if self._tally.cut_tail:
                self._writer.cut(pid=process.pid, rank=process.rank)
        return back

    def _read(self, data: bytes, start: int, end: int) -> bool:
        """The record in `data[start:end]`; False where there is none."""
        head = HEAD.match(data, start, end)
        if head is None:
            return not data[start:end].strip()
        stamp, fraction, pid, kind = head.groups()
        line_end = data.find(b"\n", head.end(), end)
        if line_end < 0:
            line_end = end
        self._tally.lines += 1
        process = self._current
        if process is None or process.pid != int(pid):
            process = self._process(int(pid))
        if process is None:
            self._tally.lose(data[start : start + _SAMPLE])
            return True
        payload = data[line_end + 1 : end]
        if payload.endswith(b"\n"):
            payload = payload[:-1]
        if kind == _CHROMIUM and self._read_phase(process, stamp, payload):
            return True
        time_ns = process.last_ns = max(process.clock.read(stamp, fraction), process.last_ns)
        json = data[head.end() : line_end]
        try:
            line = _decode(json)
        except _DAMAGE:
            return self._read_odd(process, json, payload, time_ns)
        name = kind.decode()
        record = TraceRecord(
            name, line, json=json, payload=payload, time_ns=time_ns, pid=process.pid
        )
        if record.rank is not None and 0 <= record.rank < _MOST_RANKS:
            process.rank = record.rank
        self._handle(process, record)
        self._tally.records += 1
        return True

    def _process(self, pid: int) -> TracedProcess | None:
        """None where there are more than any job has: each takes memory of its own."""
        found = self._processes.get(pid)
        if found is None and len(self._processes) >= _MOST_PROCESSES:
            return None
        if found is None:
            found = self._processes[pid] = TracedProcess(self._writer, self._source, pid)
            self._tally.formats.add("torch_trace")
            self._tally.flags.add("TORCH_TRACE")
            if len(self._processes) > 1:
                self._tally.interleaved = "tagged"
        self._current = found
        return found

    def _read_phase(self, process: TracedProcess, stamp: bytes, payload: bytes) -> bool:
        # TABs and newlines are white space to JSON: the payload is read as it lies there.
        try:
            done = process.phases.add(payload)
        except _DAMAGE:
            return False
        process.clock.settle(stamp, process.phases.last_ts)
        self._tally.records += 1
        for written in done:
            self._write_phases(process, written)
        return True

    def _write_phases(self, process: TracedProcess, written: ReadyEvent) -> None:
        self._writer.event(
            written.body,
            time_ns=written.time_ns,
            pid=process.pid,
            rank=process.rank,
            compile_id=written.compile_id,
            epoch=process.epoch,
        )

    def _handle(self, process: TracedProcess, record: TraceRecord) -> None:
        handler = _KINDS.get(record.kind)
        if handler is not None:
            handler(process, record)
        elif record.kind in ENVELOPE or record.kind == _CHROMIUM.decode():
            self._read_odd(process, record.json, record.payload, record.time_ns)
        else:
            _unknown(process, record)

    def _read_odd(self, process: TracedProcess, json: bytes, payload: bytes, time_ns: int) -> bool:
        """A record whose fields are not what they were when this was written, or damaged."""
        try:
            fields = msgspec.json.decode(json, type=dict)
        except (*_DAMAGE, ValueError):
            self._tally.lose(json)
            return True
        kind = next((key for key in fields if key not in ENVELOPE), "unknown")
        line = TraceLine(has_payload=None)
        for name in ("rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id"):
            value = fields.get(name)
            if type(value) is int:
                line = msgspec.structs.replace(line, **{name: value})
        record = TraceRecord(
            kind, line, json=json, payload=payload, time_ns=time_ns, pid=process.pid
        )
        if kind == _CHROMIUM.decode():
            self._tally.lose(payload)
        _unknown(process, record)
        return True


def _unknown(process: TracedProcess, record: TraceRecord) -> None:
    """A kind that nobody has heard of: kept whole."""
    try:
        raw = msgspec.json.decode(record.json, type=dict)
    except (*_DAMAGE, ValueError):
        process.source.tally.lose(record.json)
        return
    if record.payload:
        raw["payload"] = process.payload(record, "txt")
    try:
        process.emit(record, Unknown({"kind": f"torch_trace:{record.kind}", **raw}))
    except OverflowError:
        process.source.tally.lose(record.json)


def _intern(process: TracedProcess, record: TraceRecord) -> None:
    if record.line.interned is not None:
        text, number = record.line.interned
        process.intern(number, text)


def _artifact(process: TracedProcess, record: TraceRecord) -> None:
    meta = record.line.artifact
    name = meta.name if meta is not None else ""
    handler = _ARTIFACTS.get(name)
    if handler is not None:
        handler(process, record)
        return
    stage = graphs.STAGES.get(name)
    if stage is not None:
        graphs.graph(process, record, stage)
        return
    cache = graphs.CACHE.match(name)
    if cache is not None:
        graphs.cache_lookup(process, record, cache)
        return
    json = meta is not None and meta.encoding == "json"
    process.kept.add(record, name, "json" if json else "txt")


class _Version(msgspec.Struct):
    pytorch_version: str = ""


def _version(process: TracedProcess, record: TraceRecord) -> None:
    try:
        found = msgspec.json.decode(record.payload, type=_Version)
    except _DAMAGE:
        process.source.tally.lose(record.payload)
        return
    process.writer.started(pid=process.pid, rank=process.rank, torch=found.pytorch_version)


def _graph(process: TracedProcess, record: TraceRecord) -> None:
    graphs.graph(process, record, graphs.STAGES[record.kind])


def _keep(process: TracedProcess, record: TraceRecord) -> None:
    process.kept.add(record, record.kind)


_ARTIFACTS: dict[str, _Handler] = {
    "dynamo_graph_break_reason": causes.graph_break,
    "dynamo_error": causes.error,
    "recompile_reasons": causes.recompile_reasons,
    "torch_version": _version,
    graphs.PROVENANCE: graphs.provenance,
}
_KINDS: dict[str, _Handler] = {
    "str": _intern,
    "artifact": _artifact,
    "dynamo_start": frames.start,
    "compilation_metrics": frames.metrics,
    "bwd_compilation_metrics": frames.metrics,
    "dynamo_cpp_guards_str": causes.guards,
    "inductor_output_code": graphs.output_code,
    **dict.fromkeys(graphs.STAGES, _graph),
    **dict.fromkeys(causes.SHAPE_KINDS, causes.shape),
    **dict.fromkeys(
        (
            "describe_storage",
            "describe_tensor",
            "describe_source",
            "dynamo_guards",
            "graph_dump",
            "link",
            "dump_file",
            "exported_program",
            "compiled_autograd_graph",
            "optimize_ddp_split_graph",
            "optimize_ddp_split_child",
            "expression_created",
            "propagate_real_tensors_provenance",
            "missing_fake_kernel",
            "mismatched_fake_kernel",
            "inductor_pre_grad_graph",
            "ir_pre_fusion",
            "aot_inductor_graph",
            "aten_aliasing_info",
        ),
        _keep,
    ),
}
