"""The guards of each compiled frame: how many, of which kinds, and which line asked for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from compilescope.model.bodies import CompileTime, GraphCaptured, Guard, GuardSet
from compilescope.model.event import Event
from compilescope.model.guard_text import decode_guards
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, innermost_user_frame


class GuardLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's, and the guards that it made Dynamo install."""

    file: str
    line: int
    function: str
    source: str
    guards: int
    kinds: dict[str, int]


class GuardedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """One cache entry: a compiled frame with its graph and its guards."""

    compile_id: str | None
    file: str
    line: int
    function: str
    resumed_at: int | None
    """The line from which it goes on after a break."""
    ops: int | None
    """Of its graph; None where the frame has none."""
    guards: int
    kinds: dict[str, int]
    """Most numerous first."""
    lines: tuple[GuardLine, ...]
    """Most guards first."""
    elsewhere: int
    """Guards that no line of the user's is known for: global state, torch's own modules."""
    latency_us: int | None
    """One check with cold caches, as torch measured it when it compiled; None: not measured."""
    rank: int
    all: tuple[Guard, ...]


def guarded_graphs(run: Run, allowance: int | None = None) -> list[GuardedGraph]:
    """Every cache entry that was made, most guards first.

    With an allowance only so many guards are read, of the first entries; the others tell their
    numbers and kinds alone.
    """
    ops = {
        _compilation(event): body.ops
        for event, body in run.of(GraphCaptured)
        if body.stage == "dynamo"
    }
    latency = {
        _compilation(event): body.phases_us["guard_latency_us"]
        for event, body in run.of(CompileTime)
        if "guard_latency_us" in body.phases_us
    }
    graphs = []
    for event, body in sorted(run.of(GuardSet), key=lambda item: -item[1].count):
        key = _compilation(event)
        guards: tuple[Guard, ...] = ()
        if allowance is None or allowance > 0:
            text = run.artifacts.get(body.artifact)
            guards = tuple(_decoded(text, body)) if text else ()
        graph = _graph(event, body, guards, ops.get(key), latency.get(key))
        if allowance is not None:
            allowance -= body.count
        graphs.append(graph)
    return graphs


def _decoded(text: str, body: GuardSet) -> list[Guard]:
    try:
        return decode_guards(text, [body.frame.file] if body.frame else ())
    except msgspec.DecodeError:
        return []


def _graph(
    event: Event,
    body: GuardSet,
    guards: tuple[Guard, ...],
    ops: int | None,
    latency_us: int | None,
) -> GuardedGraph:
    lines = guard_lines(guards)
    code = body.frame or CodeRef("", 0, "?")
    return GuardedGraph(
        compile_id=event.compile_id,
        file=code.file,
        line=code.line,
        function=code.function,
        resumed_at=code.resumed_at,
        ops=ops,
        guards=body.count,
        kinds=dict(Counter(body.kinds).most_common()),
        lines=tuple(lines),
        elsewhere=body.count - sum(line.guards for line in lines),
        latency_us=latency_us,
        rank=event.rank,
        all=guards,
    )


def guard_lines(guards: Iterable[Guard]) -> list[GuardLine]:
    """The user's lines behind these guards, most guards first."""
    kinds: dict[tuple[str, int, str], Counter[str]] = {}
    functions: dict[tuple[str, int, str], str] = {}
    for guard in guards:
        frame = innermost_user_frame(guard.stack)
        if frame is not None and frame.origin in ("user", "library"):
            key = (frame.file, frame.line, frame.source.strip())
            functions.setdefault(key, frame.function)
            kinds.setdefault(key, Counter())[guard.kind] += 1
    lines = [
        GuardLine(
            file=file,
            line=line,
            function=functions[file, line, source],
            source=source,
            guards=count.total(),
            kinds=dict(count.most_common()),
        )
        for (file, line, source), count in kinds.items()
    ]
    return sorted(lines, key=lambda line: -line.guards)


def _compilation(event: Event) -> tuple[object, ...]:
    return event.pid, event.epoch, (event.compile_id or "").split("_")[0]
