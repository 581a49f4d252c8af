"""Compilations that failed, grouped by what failed and where."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.bodies import (
    CompileFailed,
    CompileTime,
    FrameSkipped,
    GraphCaptured,
    ReproWritten,
    Violation,
)
from compilescope.record.body import FindingKind, Level
from compilescope.record.error_text import graph_break_link, innermost_cause
from compilescope.record.event import Event
from compilescope.record.fingerprint import fingerprint
from compilescope.record.graph import Node, decode_graph
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame

_CompileKey = tuple[int, int, str]
"""A process, an epoch of it and a compile id."""


class FailureFinding(Finding, frozen=True, kw_only=True):
    """An error of the compiler, or of the program under it.

    `rule` explains the graph break that fullgraph=True made an error.
    """

    error: str
    cause: str = ""
    """The innermost error in one line: `RuntimeError: The size of tensor a (5) must match ...`."""
    text: str
    """The error's own, in full."""
    link: str = ""
    """The page that torch's message leads to."""
    phase: str
    gb_id: str | None
    gb_type: str | None
    hints: tuple[str, ...]
    backend: str | None
    suppressed: bool
    """True where the program went on in eager mode."""
    repro: str = ""
    """A script that shows it, within the run's folder."""
    no_repro: str = ""
    """Why there is none, where one was asked for."""

    @property
    def kind(self) -> FindingKind:
        return "failure"

    @property
    def rule_id(self) -> str:
        return self.gb_id or f"failure/{self.error}"

    @property
    def title(self) -> str:
        return f"{self.phase} compilation failed: {self.gb_type or self.error}"

    @property
    def message(self) -> str:
        why = self.why or self.text.strip()
        inner = _inner_error(self.text, self.gb_type)
        return why if (self.cause or inner) in why else f"{why.rstrip(': ')}: {inner}"

    @property
    def level(self) -> Level:
        return "error"


def _inner_error(text: str, gb_type: str | None) -> str:
    """`RuntimeError: no such op`, of a backend's error that Dynamo wraps in one of its own."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if gb_type is None and len(lines) > 1 and lines[0].endswith(" raised:"):
        return lines[1]
    return ""


def failures(run: Run) -> list[FailureFinding]:
    suppressed = {body.because for _, body in run.of(FrameSkipped) if body.because}
    groups: dict[tuple[object, ...], list[tuple[Event, CompileFailed]]] = {}
    for event, body in run.of(CompileFailed):
        called = _operator_call(run, event, body)
        # The line in the function that was compiled says more than where it begins.
        event = event if called is None else msgspec.structs.replace(event, stack=called)
        groups.setdefault(failure_key(event, body), []).append((event, body))
    frames = _frames_by_compile_id(run)
    written = _repros(run)
    found = [_failure(members, suppressed, frames, run.header.root) for members in groups.values()]
    return [_with_repro(failure, written) for failure in found]


_OPERATOR = late(r"\b([A-Za-z_]\w*)(?:\.|::)([A-Za-z_]\w*)")
"""`mylib.scaled.default`, `mylib::scaled`: as torch's messages name operators."""


def _operator_call(run: Run, event: Event, body: CompileFailed) -> tuple[Frame, ...] | None:
    """The stack down to the one line that calls the operator which a backend's error names."""
    if body.gb_type is not None or not body.backend:
        return None
    said = {f"{one}.{two}" for one, two in _OPERATOR.findall(body.cause or body.message)}
    lines: dict[tuple[str, int], Frame] = {}
    for captured, graph in run.of(GraphCaptured) if said else ():
        same = (captured.pid, captured.epoch, captured.compile_id)
        if graph.stage != "dynamo" or same != (event.pid, event.epoch, event.compile_id):
            continue
        text = run.artifacts.get(graph.graph) if graph.graph else None
        nodes: tuple[Node, ...] = ()
        with suppress(msgspec.MsgspecError):
            nodes = decode_graph(text).nodes if text else ()
        for node in nodes:
            operator = ".".join(node.target.split(".")[:2])
            if node.op == "call_function" and operator in said and node.frame is not None:
                lines[node.frame.file, node.frame.line] = node.frame
    if len(lines) != 1:
        return None
    (line,) = lines.values()
    own = [frame for frame in event.stack if frame.origin == "user"]
    if line.origin != "user" or not own or own[-1].file != line.file:
        return None
    return (*event.stack, line)


def _repros(run: Run) -> dict[str, ReproWritten]:
    """Id of an event -> what became of its repro. A graph that a device refused has failed: the
    script of its first violation shows the failure too."""
    written = {body.because: body for _, body in run.of(ReproWritten)}
    refused: dict[_CompileKey, ReproWritten] = {}
    for event, _ in run.of(Violation):
        if event.compile_id is not None and event.id in written:
            refused.setdefault((event.pid, event.epoch, event.compile_id), written[event.id])
    for event, body in run.of(CompileFailed):
        shown = refused.get((event.pid, event.epoch, event.compile_id or ""))
        if shown is not None and body.error == "ConstraintError":
            written.setdefault(event.id, shown)
    return written


def failure_key(event: Event, body: CompileFailed) -> tuple[object, ...]:
    """Failures that count as one share it."""
    frame = _place(event)
    place = (frame.file, frame.line) if frame else (body.frame,)
    return (body.error, body.phase, body.gb_type, *place)


def _place(event: Event) -> Frame | None:
    """The user's own line that was running: what a library raises, its caller can change."""
    own = (frame for frame in reversed(event.stack) if frame.origin == "user")
    return next(own, event.site)


def _with_repro(failure: FailureFinding, written: dict[str, ReproWritten]) -> FailureFinding:
    """One that there is goes before reasons why there is none."""
    asked = [written[event] for event in failure.because if event in written]
    for body in sorted(asked, key=lambda each: not each.path):
        return msgspec.structs.replace(failure, repro=body.path, no_repro=body.reason)
    return failure


def _frames_by_compile_id(run: Run) -> dict[_CompileKey, CodeRef]:
    """A backward compilation knows only the id of its forward one."""
    return {
        (event.pid, event.epoch, _without_attempt(event.compile_id)): body.frame
        for event, body in run.of(CompileTime)
        if body.frame is not None and event.compile_id is not None
    }


def _without_attempt(compile_id: str) -> str:
    return compile_id.split("_", 1)[0]


def _failure(
    members: list[tuple[Event, CompileFailed]],
    suppressed: set[str],
    frames: dict[_CompileKey, CodeRef],
    root: str,
) -> FailureFinding:
    event, body = members[0]
    frame = _place(event)
    code = body.frame
    if code is None and event.compile_id is not None:
        code = frames.get((event.pid, event.epoch, _without_attempt(event.compile_id)))
    # Old records, and those of logs, have it in the message alone.
    link, linked_id = graph_break_link(body.message)
    file = frame.file if frame else (code.file if code else "")
    line = frame.line if frame else (code.line if code else 0)
    function = frame.function if frame else (code.function if code else "")
    source = frame.source if frame else ""
    inner = _inner_error(body.message, body.gb_type).split(":")[0]
    name = f"failure {body.phase} {body.gb_type or body.error} {inner}".rstrip()
    return FailureFinding(
        error=body.error,
        cause=body.cause or innermost_cause(body.message),
        text=body.message,
        link=body.link or link,
        phase=body.phase,
        gb_id=body.gb_id or linked_id,
        gb_type=body.gb_type,
        hints=body.hints,
        backend=body.backend,
        file=file,
        line=line,
        column=frame.column if frame else None,
        end_column=frame.end_column if frame else None,
        function=function,
        source=source,
        fingerprint=fingerprint(name, Frame(file, line, function, source=source), root),
        suppressed=event.id in suppressed,
        count=len(members),
        ranks=tuple(sorted({member.rank for member, _ in members})),
        because=tuple(member.id for member, _ in members),
    )
