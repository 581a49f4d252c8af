"""Compilations as a whole: their starts, and the metrics with which they end."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from compilescope.logs.trace.causes import write_recompile
from compilescope.logs.trace.process import TracedCompilation, TracedProcess
from compilescope.logs.trace.record import MetricsMeta, TraceRecord
from compilescope.logs.words.tracebacks import make_frame, read_traceback, user_part
from compilescope.record.bodies import (
    CompileFailed,
    CompileTime,
    CudagraphSkip,
    FrameSkipped,
    SkipCause,
)
from compilescope.record.break_text import BreakTexts, is_untyped
from compilescope.record.stack import CodeRef, Frame

_MOST_WORDS = 4000
"""Letters. Chosen: as of other errors."""
_LIMIT = "Dynamo recompile limit exceeded"
_REFUSALS: dict[str, Literal["limit", "error"]] = {
    "FailOnRecompileLimitHit": "limit",
    "RecompileError": "error",
}
_BREAK_ERRORS = ("Unsupported", "UserError")
_FROM_USER = b"from user code:"
_CONFIGS = ("dynamo_config", "inductor_config", "functorch_config", "compiler_config")
_MOST_CONFIGS = 32
"""Different settings that are remembered. Chosen: a bound for memory."""


class _Fields(msgspec.Struct):
    """The same line, with every field as it is."""

    compilation_metrics: dict[str, msgspec.Raw] | None = None
    bwd_compilation_metrics: dict[str, msgspec.Raw] | None = None


_lines = msgspec.json.Decoder(_Fields)
_encoder = msgspec.json.Encoder()


def start(process: TracedProcess, record: TraceRecord) -> None:
    compilation = process.begin(record)
    meta = record.line.dynamo_start
    if meta is None or not meta.stack:
        return
    last = meta.stack[-1]
    compilation.code = process.code(process.file(last.filename), last.line or 0, last.name)
    callers = process.frames(meta.stack[:-1])
    compilation.region = process.region_of(callers, compilation.code)
    compilation.callers = tuple(_without_internal(callers))


def _without_internal(frames: list[Frame]) -> list[Frame]:
    """The user's frames above a compilation: torch's own wrappers are none of them."""
    kept: list[Frame] = []
    for frame in frames:
        if frame.origin in ("torch", "generated", "stdlib"):
            continue
        if kept or frame.origin == "user":
            kept.append(frame)
    return kept


def metrics(process: TracedProcess, record: TraceRecord) -> None:
    backward = record.kind == "bwd_compilation_metrics"
    meta = record.line.bwd_compilation_metrics if backward else record.line.compilation_metrics
    if meta is None:
        return
    compilation = process.compilation(record)
    if meta.co_name and not backward:
        compilation.code = process.code(
            meta.co_filename or "", meta.co_firstlineno or 0, meta.co_name
        )
    code = compilation.code or _code_of_frame(process, record)
    fields = _kept_fields(process, record)
    refused = _refusal(meta)
    write_recompile(process, record, compilation, code, refused)
    failed = None
    if meta.fail_type and not _taken_in_stride(meta, compilation):
        failed = _write_failure(process, record, meta, compilation, code)
    _write_skip(process, record, meta, compilation, code, failed)
    phase: Literal["forward", "backward"] = (
        "backward" if backward or meta.is_forward is False else "forward"
    )
    body = CompileTime(
        duration_ns=_duration_us(meta) * 1000,
        phases_us=fields,
        phase=phase,
        ok=meta.fail_type is None,
        frame=code if phase == "forward" else None,
        guards=meta.guard_count,
        restarts=tuple(sorted(meta.restart_reasons or ())),
    )
    process.emit(record, body, () if backward else compilation.callers, attempt=False)
    if meta.cudagraph_skip_reason:
        process.emit(record, CudagraphSkip(meta.cudagraph_skip_reason), attempt=False)
    _tell(process, meta)
    process.kept.flush()
    compilation.end()


def _duration_us(meta: MetricsMeta) -> int:
    if meta.start_time_us and meta.end_time_us:
        return max(meta.end_time_us - meta.start_time_us, 0)
    return meta.duration_us or 0


def _kept_fields(process: TracedProcess, record: TraceRecord) -> dict[str, int]:
    """Times by phase; the other fields are kept with the records, configurations once."""
    try:
        line = _lines.decode(record.json)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    fields = line.compilation_metrics or line.bwd_compilation_metrics or {}
    times: dict[str, int] = {}
    rest: dict[str, Any] = {}
    for name, raw in fields.items():
        value = bytes(raw)
        if value == b"null":
            continue
        if name in _CONFIGS:
            rest[name] = _config(process, value)
        elif name.endswith("_us") and value.isdigit():
            times[name] = int(value[:18])
        else:
            rest[name] = raw
    short = TraceRecord(
        record.kind,
        record.line,
        json=_encoder.encode({record.kind: rest}),
        payload=b"",
        time_ns=record.time_ns,
        pid=record.pid,
    )
    process.kept.add(short, record.kind)
    for name in ("start_time_us", "end_time_us"):
        times.pop(name, None)
    return times


def _config(process: TracedProcess, value: bytes) -> str:
    name = process.configs.get(value)
    if name is None:
        name = process.writer.artifact(value, "json")
        if len(process.configs) >= _MOST_CONFIGS:
            process.configs.clear()
        process.configs[value] = name
    return name


def _code_of_frame(process: TracedProcess, record: TraceRecord) -> CodeRef | None:
    """A compilation that was refused names no code: the frame's first one was of the same."""
    frame = (record.compilation or "").rpartition("/")[0]
    first = process.compilations.get(f"{frame}/0")
    return first.code if first is not None else None


def _refusal(meta: MetricsMeta) -> Literal["", "limit", "error"]:
    if (meta.fail_reason or "").startswith(_LIMIT):
        return "limit"
    return _REFUSALS.get(meta.fail_type or "", "")


def _taken_in_stride(meta: MetricsMeta, compilation: TracedCompilation) -> bool:
    """Breaks that Dynamo logged, and frames that it gave up, are no failures."""
    if (meta.fail_reason or "").startswith(_LIMIT):
        return True
    return any(body.outcome in ("frame-eager", "rest-eager") for _, body in compilation.breaks)


def _write_failure(
    process: TracedProcess,
    record: TraceRecord,
    meta: MetricsMeta,
    compilation: TracedCompilation,
    code: CodeRef | None,
) -> str:
    message = meta.fail_reason or ""
    root = None
    if meta.fail_type in _BREAK_ERRORS or is_untyped(message):
        root, _ = BreakTexts().root_and_wrappers(message)
    backward = record.kind == "bwd_compilation_metrics" or meta.is_forward is False
    body = CompileFailed(
        error=meta.fail_type or "",
        message=message if len(message) <= _MOST_WORDS else message[:_MOST_WORDS] + "…",
        phase="backward" if backward else "forward",
        gb_type=root.gb_type if root else None,
        gb_id=root.gb_id if root else None,
        hints=root.hints if root else (),
        backend=_backend(message),
        frame=None if backward else code,
    )
    stack = () if backward else _failure_stack(meta, compilation, code, bool(process.has_columns))
    process.writer.sources(stack)
    return process.emit(record, body, stack)


def _failure_stack(
    meta: MetricsMeta, compilation: TracedCompilation, code: CodeRef | None, columns: bool
) -> list[Frame]:
    traced: list[Frame] = []
    tail = compilation.error_text.rpartition(_FROM_USER)[2] if compilation.error_text else b""
    if tail and _FROM_USER in compilation.error_text and _backend(meta.fail_reason or "") is None:
        traced = read_traceback(tail.decode("utf-8", "replace").splitlines(), columns=columns)
    if not traced and meta.fail_user_frame_filename:
        name = code.function if code else ""
        traced = [make_frame(meta.fail_user_frame_filename, meta.fail_user_frame_lineno or 0, name)]
    if not traced and code is not None:
        traced = [make_frame(code.file, code.line, code.function)]
    return user_part([*compilation.callers, *traced])


def _backend(message: str) -> str | None:
    if not message.startswith("backend='"):
        return None
    return message[9:].partition("'")[0] or None


def _write_skip(
    process: TracedProcess,
    record: TraceRecord,
    meta: MetricsMeta,
    compilation: TracedCompilation,
    code: CodeRef | None,
    failed: str | None,
) -> None:
    """The frame runs eagerly: at a break, at the recompile limit, or past a suppressed error."""
    reason = meta.fail_reason or ""
    if code is None:
        return
    given_up = [b for b in compilation.breaks if b[1].outcome in ("frame-eager", "rest-eager")]
    cause: SkipCause
    if reason.startswith(_LIMIT):
        words, _ = BreakTexts().root_and_wrappers(reason)
        body = FrameSkipped(code, "recompile-limit", words.explanation)
    elif failed is not None and meta.config_suppress_errors:
        cause = "backend" if _backend(reason) else "error"
        body = FrameSkipped(
            code, cause, "an error was suppressed during compilation", because=failed
        )
    elif given_up and meta.fail_type and not meta.has_guarded_code:
        event, root = given_up[-1]
        body = FrameSkipped(code, "graph-break", root.gb_type, root.gb_type, root.gb_id, event)
    else:
        return
    process.emit(record, body, compilation.callers, attempt=False)


def _tell(process: TracedProcess, meta: MetricsMeta) -> None:
    if process.told_version:
        return
    process.told_version = True
    process.writer.started(
        pid=process.pid,
        rank=process.rank,
        torch=meta.pytorch_version or "",
        python=(meta.python_version or "").split(" ")[0],
        device="cuda" if meta.cuda_version else "cpu",
    )
