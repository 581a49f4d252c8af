"""Draws one event of a running program as a small entry of its live page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compilescope.record import bodies
from compilescope.record.error_text import innermost_cause
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef, shown_code
from compilescope.report.blocks import Block, Excerpt, Item, Paragraph, Span, Style, Words, words
from compilescope.report.places import count, first_line, place
from compilescope.report.render.spans import duration

KINDS = {
    "break": "Graph breaks",
    "recompile": "Recompiles",
    "failure": "Failures",
    "eager": "Eager fallbacks",
    "violation": "Violations",
    "graph": "Graphs",
    "compile": "Compilations",
    "phases": "Phases",
    "result": "Results",
    "process": "Processes",
    "other": "Notes",
}
"""What a reader may filter by."""
# Chosen: letters of a text and phases of a compilation that an entry of the live page has room for.
_MOST_LETTERS = 300
_MOST_PHASES = 4


def kind_of(event: Event) -> str | None:
    """None: it is of no interest by itself."""
    body = event.body
    if isinstance(body, bodies.GraphCaptured) and body.stage != "dynamo":
        return None
    if isinstance(body, bodies.FrameSkipped) and body.cause == "harmless":
        return None
    if isinstance(body, bodies.CompilePhases) and not body.phases:
        return None
    known = _SAYING.get(type(body))
    return known[0] if known is not None else None


def moment(event: Event, root: str, started_ns: int) -> Item:
    """Of an event that has a kind."""
    kind, say = _SAYING[type(event.body)]
    left, right, blocks = say(event, event.body, root)
    if event.rank:
        right = (*right, Span(f" · rank {event.rank}", "dim"))
    when = _since(event.time_ns - started_ns)
    return Item(when, left, right, blocks, tags=(f"kind:{kind}",))


def _since(ns: int) -> str:
    """`+1.2 s`, `+2:05`."""
    seconds = max(ns, 0) / 1e9
    if seconds < 60:
        return f"+{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02}:{rest:02}" if hours else f"+{minutes}:{rest:02}"


def clipped(text: str, most: int = _MOST_LETTERS) -> str:
    """A page of updates must stay small, whatever a program calls its functions."""
    text = text.strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"


_Said = tuple[Words, Words, tuple[Block, ...]]


def _at(code: CodeRef | None, event: Event, root: str) -> Words:
    """Where the user's code is."""
    if code is None:
        frame = event.site
        if frame is None:
            return words("unknown place")
        code = CodeRef(frame.file, frame.line, frame.function)
    else:
        code = shown_code(code, event.stack)
    part = f" (from line {code.resumed_at})" if code.resumed_at else ""
    where = Span(clipped(place(code.file, code.line, root)), "strong")
    return words(where, f" {clipped(code.function)}{part}")


def _line(event: Event) -> tuple[Block, ...]:
    frame = event.site
    if frame is None or not frame.source.strip():
        return ()
    if len(frame.source) > _MOST_LETTERS:
        return (Excerpt(clipped(frame.source)),)
    return (Excerpt(frame.source, frame.column, frame.end_column),)


def _text(text: str, style: Style = "plain") -> Paragraph:
    return Paragraph(words(Span(clipped(text), style)))


def _broke(event: Event, body: bodies.GraphBreak, root: str) -> _Said:
    frame = event.site
    code = CodeRef(frame.file, frame.line, frame.function) if frame else body.frame
    right = words(Span(f"{clipped(body.gb_id or '')} graph break".strip(), "warn"))
    return _at(code, event, root), right, (*_line(event), _text(body.gb_type))


def _recompiled(event: Event, body: bodies.Recompile, root: str) -> _Said:
    left = _at(body.frame, event, root)
    if body.refused:
        limit = "recompile limit hit" if body.refused == "limit" else "recompile refused"
        return left, words(Span(limit, "bad")), _guards(body.entries)
    return left, words(Span("recompile", "warn")), _guards(body.entries)


def _guards(entries: tuple[bodies.CacheEntryMiss, ...]) -> tuple[Block, ...]:
    """The guard that failed since the last call: the entry that was used last comes first."""
    for entry in entries:
        if not entry.failed:
            if entry.reason:
                return (_text(entry.reason),)
            continue
        failed = entry.failed[0]
        if failed.expected or failed.actual:
            got = f": expected {clipped(failed.expected) or '?'}, got {clipped(failed.actual)}"
        else:
            got = f": {clipped(failed.guard)}"
        more = len(entry.failed) - 1
        also = f", and {count(more, 'more guard')}" if more else ""
        return (Paragraph(words(Span(clipped(failed.subject), "code"), got, Span(also, "dim"))),)
    return ()


def _captured(event: Event, body: bodies.GraphCaptured, root: str) -> _Said:
    ops = f"graph, {count(body.ops, 'op')}" if body.ops is not None else "graph"
    backend = f" → {clipped(body.backend)}" if body.backend else ""
    return _at(body.frame, event, root), words(f"{ops}{backend}"), ()


def _compiled(event: Event, body: bodies.CompileTime, root: str) -> _Said:
    how = "compiled" if body.ok else "compilation failed"
    backward = " (backward)" if body.phase == "backward" else ""
    said = Span(f"{how}{backward} in {duration(body.duration_ns)}", "dim" if body.ok else "bad")
    if backward and body.frame is None and event.site is None:
        # PyTorch names no frame then; the compile id says what it belongs to.
        return words(f"backward of {event.compile_id or '?'}"), words(said), ()
    return _at(body.frame, event, root), words(said), ()


def _phases(event: Event, body: bodies.CompilePhases, root: str) -> _Said:
    spent = sorted(own_times(body.phases).items(), key=lambda each: -each[1])[:_MOST_PHASES]
    told = ", ".join(f"{clipped(name, 60)} {duration(ns)}" for name, ns in spent)
    return words(Span(told, "dim")), words(Span(f"phases of {event.compile_id or '?'}", "dim")), ()


def own_times(phases: Iterable[bodies.Phase]) -> dict[str, int]:
    """By name, without what lies within: so they add up."""
    spent: dict[str, int] = {}
    around: list[bodies.Phase] = []
    for phase in phases:
        del around[phase.depth :]
        spent[phase.name] = spent.get(phase.name, 0) + phase.duration_ns
        if around:
            spent[around[-1].name] -= phase.duration_ns
        around.append(phase)
    return {name: max(ns, 0) for name, ns in spent.items()}


def _skipped(event: Event, body: bodies.FrameSkipped, root: str) -> _Said:
    reason = (_text(body.reason),) if body.reason else ()
    return _at(body.frame, event, root), words(Span("runs eagerly", "warn")), reason


def _failed(event: Event, body: bodies.CompileFailed, root: str) -> _Said:
    said = body.cause or innermost_cause(body.message) or first_line(body.message)
    right = words(Span(clipped(body.error, 80), "bad"))
    site = event.site
    code = CodeRef(site.file, site.line, site.function) if site else body.frame
    return _at(code, event, root), right, (*_line(event), _text(said))


def _violates(event: Event, body: bodies.Violation, root: str) -> _Said:
    style: Style = "bad" if body.severity == "error" else "warn"
    found = f": found {clipped(body.found)}; {clipped(body.device)} allows {clipped(body.allowed)}"
    told = Paragraph(words(Span(clipped(body.op), "code"), found))
    right = words(Span(f"{clipped(body.rule, 60)} {body.severity}", style))
    return _at(None, event, root), right, (*_line(event), told)


def _started(event: Event, body: bodies.ProcessStarted, root: str) -> _Said:
    said = f"Process {event.pid} started"
    return words(said), words(Span(f"torch {clipped(body.torch, 40)}", "dim")), ()


def _ended(event: Event, body: bodies.ProcessEnded, root: str) -> _Said:
    if not body.error:
        return words(f"Process {event.pid} ended"), (), ()
    said = first_line(body.message)
    told = (_text(said),) if said else ()
    return words(f"Process {event.pid} ended"), words(Span(clipped(body.error, 80), "bad")), told


def _job(event: Event, body: bodies.JobEnded, root: str) -> _Said:
    style: Style = "good" if body.state == "ok" else "bad"
    reason = (_text(body.reason),) if body.reason else ()
    return words(Span(clipped(body.name), "strong")), words(Span(body.state, style)), reason


def _benchmark(event: Event, body: bodies.Benchmark, root: str) -> _Said:
    left = words(Span(clipped(body.model), "strong"), f" {clipped(body.backend)}, {body.mode}")
    if body.latency_ms is None:
        return left, words(Span("not measured", "warn")), ()
    if body.noisy_latency:
        return left, words(Span("too noisy to tell", "warn")), ()
    return left, words(f"{body.latency_ms:.3g} ms"), ()


_VERDICTS: dict[str, Style] = {"pass": "good", "fail": "bad", "unknown": "warn"}


def _compared(event: Event, body: bodies.DiffOutcome, root: str) -> _Said:
    left = words(Span(clipped(body.model), "strong"), f" {clipped(body.test)}")
    return left, words(Span(body.verdict, _VERDICTS[body.verdict])), (_text(body.reason),)


def _minified(event: Event, body: bodies.MinifyOutcome, root: str) -> _Said:
    right = words(f"{body.size_before} -> {body.size} {body.unit}")
    return words(clipped(body.cause)), right, (_text(body.reason),) if body.reason else ()


def _checked(event: Event, body: bodies.CheckOutcome, root: str) -> _Said:
    told = tuple(_text(each.message) for each in body.checks if each.outcome != "pass")
    return words("check"), words(Span(body.outcome, _VERDICTS[body.outcome])), told


def _numbers(event: Event, body: bodies.TensorDiff, root: str) -> _Said:
    model = f" {clipped(body.model)}" if body.model else ""
    reason = (_text(body.reason),) if body.reason else ()
    right = words(Span(body.verdict, _VERDICTS[body.verdict]))
    return words(Span(clipped(body.path), "strong"), model), right, reason


def _fix(event: Event, body: bodies.FixAttempt, root: str) -> _Said:
    style: Style = "good" if body.verdict == "verified" else "dim"
    reason = (_text(body.reason),) if body.reason else ()
    return words(clipped(body.title or body.cause)), words(Span(body.verdict, style)), reason


def _measured(event: Event, body: bodies.Measurement, root: str) -> _Said:
    what = " ".join(filter(None, (body.name, body.subject, body.variant)))
    return words(clipped(what)), words(f"{body.value:.4g}"), ()


def _cudagraphs(event: Event, body: bodies.CudagraphSkip, root: str) -> _Said:
    return words("CUDA graphs were not used"), (), (_text(body.reason),)


def _fault(event: Event, body: bodies.ToolFault, root: str) -> _Said:
    left = words(f"compilescope failed in {clipped(body.where)}; the program continues")
    return left, words(Span("a bug of compilescope", "bad")), (_text(body.error),)


def _stance(event: Event, body: bodies.StanceChanged, root: str) -> _Said:
    return words(f"torch.compiler stance: {clipped(body.stance)}"), (), ()


_SAYING: dict[type, tuple[str, Callable[[Event, Any, str], _Said]]] = {
    bodies.GraphBreak: ("break", _broke),
    bodies.Recompile: ("recompile", _recompiled),
    bodies.GraphCaptured: ("graph", _captured),
    bodies.CompileTime: ("compile", _compiled),
    bodies.CompilePhases: ("phases", _phases),
    bodies.FrameSkipped: ("eager", _skipped),
    bodies.CompileFailed: ("failure", _failed),
    bodies.Violation: ("violation", _violates),
    bodies.ProcessStarted: ("process", _started),
    bodies.ProcessEnded: ("process", _ended),
    bodies.JobEnded: ("result", _job),
    bodies.Benchmark: ("result", _benchmark),
    bodies.TensorDiff: ("result", _numbers),
    bodies.DiffOutcome: ("result", _compared),
    bodies.MinifyOutcome: ("result", _minified),
    bodies.CheckOutcome: ("result", _checked),
    bodies.FixAttempt: ("result", _fix),
    bodies.Measurement: ("result", _measured),
    bodies.CudagraphSkip: ("other", _cudagraphs),
    bodies.ToolFault: ("other", _fault),
    bodies.StanceChanged: ("other", _stance),
}
