"""The guards of each compiled frame: how many, of which kinds, and which line asked for them.

Also compilations of one function side by side: which of their guards are equal, and what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from compilescope.base.patterns import late
from compilescope.record.bodies import CompileTime, GraphCaptured, Guard, GuardSet
from compilescope.record.event import Event
from compilescope.record.guards import decode_guards
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, innermost_user_frame


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


# Dynamo numbers the copies of a module's globals: no part of what is checked.
_COUNTER = late(r"(__builtins_dict___)\d+")
_MARKS = late(r", |[\[(\])]")
_Key = tuple[str, str]


class GuardDifference(msgspec.Struct, frozen=True):
    """A guard that every compilation has, each in its own way."""

    source: str
    kind: str
    values: dict[str, tuple[str, ...]]
    """The part that differs -> the compile IDs that check it."""


class ExtraGuards(msgspec.Struct, frozen=True):
    """Guards that only some compilations have."""

    compile_ids: tuple[str, ...]
    sources: tuple[str, ...]


class GuardGroup(msgspec.Struct, frozen=True):
    """The compilations of one function, or of one part of it."""

    graphs: tuple[GuardedGraph, ...]
    """Most guards first."""
    same: int
    """Guards that are equal in all of them."""
    differences: tuple[GuardDifference, ...] = ()
    extras: tuple[ExtraGuards, ...] = ()


def guard_groups(graphs: Iterable[GuardedGraph]) -> list[GuardGroup]:
    """In the order of each group's first graph. A graph whose guards are not at hand is alone."""
    groups: dict[tuple[object, ...], list[GuardedGraph]] = {}
    for number, graph in enumerate(graphs):
        key: tuple[object, ...] = (graph.file, graph.line, graph.function, graph.resumed_at)
        known = len(graph.all) == graph.guards
        groups.setdefault((*key, graph.rank) if known else (number,), []).append(graph)
    return [_group(members) for members in groups.values()]


def _group(graphs: list[GuardedGraph]) -> GuardGroup:
    if len(graphs) == 1:
        return GuardGroup((graphs[0],), graphs[0].guards)
    checked = {graph.compile_id or "?": _checks(graph.all) for graph in graphs}
    keys = dict.fromkeys(key for checks in checked.values() for key in checks)
    same, differences = 0, []
    missing: dict[tuple[str, ...], list[str]] = {}
    for key in keys:
        having = tuple(name for name, checks in checked.items() if key in checks)
        texts = {name: checked[name][key] for name in having}
        if len(having) < len(checked):
            missing.setdefault(having, []).append(key[0])
        elif len(set(texts.values())) == 1:
            same += 1
        else:
            differences.append(GuardDifference(*key, _values(texts)))
    extras = [ExtraGuards(names, tuple(dict.fromkeys(found))) for names, found in missing.items()]
    # Each of these names all tensors, so it differs as soon as any tensor is new.
    differences.sort(key=lambda each: each.kind.startswith("NO_TENSOR_ALIASING"))
    return GuardGroup(tuple(graphs), same, tuple(differences), tuple(extras))


def _checks(guards: Iterable[Guard]) -> dict[_Key, str]:
    """One entry a guard; several of a kind on one value are told apart by their order."""
    found: dict[_Key, str] = {}
    for guard in guards:
        source = _COUNTER.sub(r"\1", guard.source)
        kind, number = guard.kind, 1
        while (source, kind) in found:
            number += 1
            kind = f"{guard.kind} {number}"
        found[source, kind] = _COUNTER.sub(r"\1", ", ".join(guard.checks))
    return found


def _parts(text: str) -> list[str]:
    """Cut at the commas after which no bracket closes before another opens."""
    found: list[str] = []
    end, closes = len(text), False
    for mark in reversed(list(_MARKS.finditer(text))):
        if mark[0] != ", ":
            closes = mark[0] in "])"
        elif not closes:
            found.append(text[mark.end() : end])
            end = mark.start()
    return [*reversed([*found, text[:end]])]


def _values(texts: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Of each text the parts that are not the same in all."""
    parts = {name: _parts(text) for name, text in texts.items()}
    alike = len({len(each) for each in parts.values()}) == 1
    values: dict[str, tuple[str, ...]] = {}
    for name, mine in parts.items():
        shown = [
            part
            for number, part in enumerate(mine)
            if not alike or any(other[number] != part for other in parts.values())
        ]
        text = ", ".join(shown)
        if text.count(")") > text.count("("):
            text = text.removesuffix(")")  # Of a call whose beginning is the same in all.
        values[text] = (*values.get(text, ()), name)
    return values
