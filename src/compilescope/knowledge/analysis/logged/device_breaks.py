"""Graph breaks that Dynamo does not report: those of torch_xla, and those that a log only implies.

torch_xla ends a graph where a value is read on the host, at a sync, and at an operator without a
lowering. A log without Dynamo's reports still shows a break by the rest of the function that is
compiled after it. Both become sites like any other, so that every view explains them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from compilescope.knowledge.analysis.logged.callers import in_module
from compilescope.knowledge.analysis.logged.fallbacks import (
    MOST_SOUGHT,
    FallbackOp,
    base_name,
    calls,
    fallback_ops,
)
from compilescope.knowledge.analysis.logged.graphs import LoggedGraph, logged_graphs
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.rules.causes.device_words import DEVICE_RULES, DeviceBreak, reader_in
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import GraphExecuted
from compilescope.record.event import Event
from compilescope.record.fingerprint import fingerprint, relative_file
from compilescope.record.logged import FallbackOps, GraphCompiled, LogRead
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame

UNREPORTED = "log/unreported-break"
_SPLITS = ("cpu-fallback", "probe")


class _BreakGroup(msgspec.Struct):
    """Events of one site."""

    rule: str
    words: str
    place: Frame | None
    through: tuple[Frame, ...] = ()
    ops: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    """Events that name its operators."""
    context: str = ""
    inexact: bool = False
    """Its place is that of the function around it."""
    unsought: int = 0
    """Operators of it whose lines nobody looked for."""
    graphs_left: int = 0
    """Graphs in which nobody looked for the lines of the others."""
    events: list[Event] = msgspec.field(default_factory=list)


def device_sites(run: Run, sources: Sources) -> list[BreakFinding]:
    """In order of appearance."""
    if not _is_logged(run):
        return []
    groups = _Groups(run, sources)
    return [_site(group, run, groups.runs) for group in groups.found()]


def _is_logged(run: Run) -> bool:
    return any(run.count(kind) for kind in (GraphCompiled, FallbackOps, LogRead))


class _Groups:
    def __init__(self, run: Run, sources: Sources) -> None:
        self._sources = sources
        self._graphs = logged_graphs(run, sources)
        self._events = {event.id: event for event in run.events}
        self._ops = [op for op in fallback_ops(run, sources) if not op.host_read]
        self._groups: dict[tuple[object, ...], _BreakGroup] = {}
        self.runs = _executions(run)

    def found(self) -> list[_BreakGroup]:
        split = [graph for graph in self._graphs if graph.kind in _SPLITS and not graph.because]
        for graph in self._graphs:
            self._take(graph)
        self._name_operators(split)
        self._drop_good_syncs()
        return list(self._groups.values())

    def _take(self, graph: LoggedGraph) -> None:
        event = self._events[graph.event]
        if graph.because is not None:
            return
        if graph.kind == "eager":
            self._group(_rule_of(graph.words), event, graph)
        elif graph.kind == "sync":
            self._group("xla/sync", event, graph)
        elif graph.kind == "graph-break":
            self._unreported(event)

    def _group(self, rule: str, event: Event, graph: LoggedGraph) -> None:
        place = self._with_source(graph.place)
        cause = event.body.cause if isinstance(event.body, GraphCompiled) else ""
        words = cause or DEVICE_RULES[rule].title
        key = (rule, place.file, place.line) if place is not None else (rule, event.rank, words)
        group = self._groups.setdefault(key, _BreakGroup(rule, words, place, graph.through))
        group.events.append(event)

    def _unreported(self, event: Event) -> None:
        resumes = getattr(event.body, "resumes", ())
        code = next(iter(resumes), getattr(event.body, "frame", None))
        if not isinstance(code, CodeRef) or code.resumed_at is None:
            return
        place = self._with_source(Frame(code.file, code.resumed_at, code.function))
        assert place is not None
        key = (UNREPORTED, place.file, place.line)
        words = DEVICE_RULES[UNREPORTED].title
        self._groups.setdefault(key, _BreakGroup(UNREPORTED, words, place)).events.append(event)

    def _with_source(self, place: Frame | None) -> Frame | None:
        if place is None or place.source.strip():
            return place
        lines = self._sources.lines(place.file)
        text = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
        return Frame(place.file, place.line, place.function, source=text, origin=place.origin)

    def _name_operators(self, split: list[LoggedGraph]) -> None:
        """The operators without a lowering, by their lines; the graphs that they split go to the
        first: the log does not say at which of them each piece ends."""
        first: _BreakGroup | None = None
        named: dict[int, tuple[_BreakGroup, list[FallbackOp]]] = {}
        for op in self._ops:
            group = (op.sought and self._reading(op)) or self._of_operator(op)
            group.rule = "xla/cpu-fallback"
            group.context = group.context or _in_log(op)
            named.setdefault(id(group), (group, []))[1].append(op)
            first = first or group
        for group, ops in named.values():
            group.ops = tuple(op.op for op in ops)
            group.words = f"Op(s) not lowered: {', '.join(group.ops)}"
            group.told = tuple(event for op in ops for event in op.because)
            group.unsought = sum(not op.sought for op in ops)
            group.graphs_left = max(op.graphs_left for op in ops)
        if split and first is None:
            first = _BreakGroup("xla/cpu-fallback", "Op(s) not lowered", _common(split))
            self._groups["xla/cpu-fallback",] = first
        if first is not None:
            first.events += [self._events[graph.event] for graph in split]

    def _reading(self, op: FallbackOp) -> _BreakGroup | None:
        """The line at which torch_xla says that a value is needed, where it calls the operator."""
        for group in self._groups.values():
            at = group.place
            if group.rule not in ("xla/host-read", "xla/cpu-fallback") or at is None:
                continue
            if calls(at.source, base_name(op.op)) or (op.exact and _is_at(op, at)):
                return group
        return None

    def _of_operator(self, op: FallbackOp) -> _BreakGroup:
        place = Frame(op.file, op.line, op.function, source=op.source) if op.line else None
        place = self._with_source(place)
        key = ("xla/cpu-fallback", op.file, op.line)
        inexact = bool(op.line) and not op.exact
        group = _BreakGroup("xla/cpu-fallback", "", place, inexact=inexact)
        return self._groups.setdefault(key, group)

    def _drop_good_syncs(self) -> None:
        """One sync a step, with one graph, is how torch_xla is meant to be used."""
        # The first graph of a log without its beginning may be of any kind.
        lazy = not any(graph.kind == "region" and graph.cut != "head" for graph in self._graphs)
        for key, group in list(self._groups.items()):
            if group.rule != "xla/sync":
                continue
            inside = any(in_module(event.stack) for event in group.events)
            if lazy and not inside and _different(group.events) < 2:
                del self._groups[key]


def _different(events: list[Event]) -> int:
    """The most different graphs that any rank compiled; every rank compiles its own."""
    graphs = {(event.rank, getattr(event.body, "hash", "") or event.id) for event in events}
    return max(Counter(rank for rank, _ in graphs).values(), default=0)


def _is_at(op: FallbackOp, at: Frame) -> bool:
    return (op.file, op.line) == (at.file, at.line)


def _in_log(op: FallbackOp) -> str:
    return f"{op.log}:{op.log_line}" if op.log_line else op.log


def _common(graphs: list[LoggedGraph]) -> Frame | None:
    """The line that all of them came from."""
    places = dict.fromkeys(graph.place for graph in graphs)
    return next(iter(places)) if len(places) == 1 else None


def _rule_of(words: str) -> str:
    cause = words.lower()
    if "access" in cause:
        return "xla/host-read"
    return "xla/pending-inputs" if "input" in cause or "pending" in cause else "xla/eager-ops"


def _executions(run: Run) -> dict[tuple[int, str, tuple[Frame, ...]], int]:
    found: dict[tuple[int, str, tuple[Frame, ...]], int] = {}
    for event, body in run.of(GraphExecuted):
        key = (event.rank, body.cause, event.stack)
        found[key] = found.get(key, 0) + body.count
    return found


def _runs(events: Iterable[Event], runs: dict[tuple[int, str, tuple[Frame, ...]], int]) -> int:
    keys = {(e.rank, getattr(e.body, "cause", ""), e.stack) for e in events}
    return sum(runs.get(key, 0) for key in keys)


def _site(
    group: _BreakGroup,
    run: Run,
    runs: dict[tuple[int, str, tuple[Frame, ...]], int],
) -> BreakFinding:
    rule = DEVICE_RULES[group.rule]
    place = group.place
    stack = group.events[0].stack if group.events else ()
    inside = tuple(frame for frame in stack if place is not None and frame.origin == "torch")
    text = place.source if place is not None else ""
    seen = DeviceBreak(
        text=text,
        function=place.function if place is not None else "the model",
        graphs=len(group.events),
        different=_different(group.events),
        runs=_runs(group.events, runs),
        in_module=any(in_module(event.stack) for event in group.events),
        stack=inside,
        ops=group.ops,
        operators=_only_calls_operators(text, inside),
    )
    root = run.header.root
    because = (*(event.id for event in group.events), *group.told)
    return BreakFinding(
        gb_id=None,
        gb_type=group.words,
        file=place.file if place is not None else "",
        line=place.line if place is not None else 0,
        column=None,
        end_column=None,
        function=place.function if place is not None else "",
        source=text,
        explanation="",
        hints=(),
        context="; ".join(_details(group, seen, root)),
        wrappers=(),
        count=max(len(group.events), 1),
        frames=1,
        ranks=tuple(sorted({event.rank for event in group.events} or {0})),
        tests=(),
        outcome="unknown",
        gave_up=(),
        in_torch=False,
        # Where the text of the line is not known, nothing else tells it from its neighbors.
        fingerprint=fingerprint(
            f"{rule.id} {group.words}"
            + ("" if text.strip() or place is None else f" {place.line}"),
            place,
            root,
        ),
        because=because,
        category=rule.category,
        rule=rule.id,
        why=rule.why(seen),
        remedy=tuple(rule.remedies(seen)),
    )


def _details(group: _BreakGroup, seen: DeviceBreak, root: str) -> Iterable[str]:
    """What it cost, how it was reached, and where the log says so."""
    if seen.graphs:
        yield "1 graph" if seen.graphs == 1 else f"{seen.graphs} graphs"
    if seen.runs > seen.graphs:
        yield f"executed {seen.runs} times"
    for frame in group.through:
        yield f"through {frame.function} ({relative_file(frame.file, root)}:{frame.line})"
    if group.inexact:
        yield f"somewhere in {seen.function}: the log does not show the line"
    if group.unsought:
        ops = (
            "1 operator's line was"
            if group.unsought == 1
            else f"{group.unsought} operators' lines were"
        )
        yield f"{ops} not searched for (only those of the first {MOST_SOUGHT} operators are)"
    if group.graphs_left:
        graphs = "1 graph" if group.graphs_left == 1 else f"{group.graphs_left} graphs"
        yield f"not searched for in {graphs}: the log has too many; other lines may call it too"
    if group.context:
        yield f"named in {group.context}"


def _only_calls_operators(text: str, inside: tuple[Frame, ...]) -> bool | None:
    """Of a line that is known: has it nothing that reads a value?"""
    return None if not text.strip() else reader_in(text, inside) is None
