"""One record of a trace: `LMMDD HH:MM:SS.uuuuuu PID path:line] {json}`, then its payload.

Every line of the payload has a TAB before it.
"""

from typing import Any

import msgspec

from compilescope.base.patterns import late

HEAD = late(
    rb"[VIWEC](\d{4} \d\d:\d\d:\d\d)\.(\d{1,9}) (\d{1,10}) [^\s\]]{1,1000}:\d{1,9}\] "
    rb'(?=\{"(\w{1,100})")'
)
"""Stamp, its fraction, process, and the first key, which is the record's kind."""
ENVELOPE = frozenset(
    (
        "rank",
        "compiled_autograd_id",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "subgraph_name",
        "has_payload",
        "stack",
        "severity",
        "timestamp",
        "pathname",
        "lineno",
        "thread",
        "process",
    )
)


class StackFrame(msgspec.Struct, frozen=True):
    """A frame as the trace writes it: its file is a number."""

    line: int | None = None
    name: str = ""
    filename: int | str = -1
    loc: str | None = None


class ArtifactMeta(msgspec.Struct, frozen=True):
    name: str = ""
    encoding: str = ""


class StartMeta(msgspec.Struct, frozen=True):
    stack: tuple[StackFrame, ...] = ()


class FileMeta(msgspec.Struct, frozen=True):
    filename: str | None = None


class ShapeMeta(msgspec.Struct, frozen=True):
    """What records about sizes have, each some of it."""

    symbol: Any = ""
    val: Any = ""
    value: Any = ""
    vr: Any = ""
    expr: Any = ""
    source: Any = ""
    sources: tuple[Any, ...] | None = ()
    reason: Any = ""
    result: Any = ""
    user_stack: tuple[StackFrame, ...] | None = ()


class MetricsMeta(msgspec.Struct, frozen=True):
    """The few of a hundred fields that the record keeps under names of its own."""

    compile_id: str | None = None
    co_name: str | None = None
    co_filename: str | None = None
    co_firstlineno: int | None = None
    guard_count: int | None = None
    fail_type: str | None = None
    fail_reason: str | None = None
    fail_user_frame_filename: str | None = None
    fail_user_frame_lineno: int | None = None
    restart_reasons: tuple[str, ...] | None = ()
    is_forward: bool | None = None
    start_time_us: int | None = None
    end_time_us: int | None = None
    duration_us: int | None = None
    config_suppress_errors: bool | None = None
    has_guarded_code: bool | None = None
    python_version: str | None = None
    pytorch_version: str | None = None
    cuda_version: str | None = None
    cudagraph_skip_reason: str | None = None


class TraceLine(msgspec.Struct, frozen=True):
    """The JSON of a record: its envelope, and the kinds whose fields are used."""

    rank: int | None = None
    compiled_autograd_id: int | None = None
    frame_id: int | None = None
    frame_compile_id: int | None = None
    attempt: int | None = None
    has_payload: str | None = None
    interned: tuple[str, int] | None = msgspec.field(default=None, name="str")
    artifact: ArtifactMeta | None = None
    dynamo_start: StartMeta | None = None
    inductor_output_code: FileMeta | None = None
    create_symbol: ShapeMeta | None = None
    create_unbacked_symbol: ShapeMeta | None = None
    guard_added: ShapeMeta | None = None
    guard_added_fast: ShapeMeta | None = None
    symbolic_shape_specialization: ShapeMeta | None = None
    propagate_real_tensors: ShapeMeta | None = None
    compilation_metrics: MetricsMeta | None = None
    bwd_compilation_metrics: MetricsMeta | None = None

    @property
    def compilation(self) -> str | None:
        """The compile id without the attempt, as torch writes it."""
        frame = f"{self.frame_id}/{self.frame_compile_id}" if self.frame_id is not None else ""
        if self.compiled_autograd_id is not None:
            return f"!{self.compiled_autograd_id}" + (f"/{frame}" if frame else "")
        return frame or None


class TraceRecord:
    """A record whose JSON has been read; its payload is still as it lies in the file."""

    __slots__ = (
        "attempt",
        "compilation",
        "json",
        "kind",
        "line",
        "payload",
        "pid",
        "rank",
        "time_ns",
    )

    def __init__(
        self, kind: str, line: TraceLine, *, json: bytes, payload: bytes, time_ns: int, pid: int
    ) -> None:
        self.kind = kind
        self.line = line
        self.json = json
        self.payload = payload
        self.time_ns = time_ns
        self.pid = pid
        self.rank = line.rank
        self.compilation = line.compilation
        self.attempt = line.attempt or 0

    @property
    def compile_id(self) -> str | None:
        """With the attempt, as capture writes it."""
        if self.compilation is None or not self.attempt:
            return self.compilation
        return f"{self.compilation}_{self.attempt}"

    def text(self) -> bytes:
        """The payload without the TABs."""
        return self.payload[1:].replace(b"\n\t", b"\n")
