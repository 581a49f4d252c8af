"""What a user of an XLA device asks a log: how many graphs, how many were hoped for, and why."""

from __future__ import annotations

from collections import Counter

import msgspec

from compilescope.model.bodies import ReproWritten
from compilescope.model.logged import BreakEcho
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef
from compilescope.rules.digest import Digest
from compilescope.rules.logged.classes import MEANINGS, GraphClass
from compilescope.rules.logged.graph import LoggedGraph
from compilescope.rules.logged.graphs import expected_graphs, logged_graphs
from compilescope.rules.logged.verdict import LogVerdict, judge_log
from compilescope.rules.sites import Site

_NOT_TOLD = "a function continues here after a break that no Dynamo line reports"


class LoggedBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A graph break in the log, and the graphs that exist because of it."""

    file: str
    line: int
    function: str
    source: str
    gb_id: str | None
    reason: str
    events: int
    """How often the log reports it, echoes apart."""
    echoes: int
    graphs: int
    inferred: bool = False
    """No line of Dynamo's tells of it: functions go on at that line, so one was there."""
    fingerprint: str = ""
    repro: str = ""
    """A script that shows such a break, within the run's folder."""
    no_repro: str = ""
    """Why there is none, or what could not be verified of it."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The log's answers."""

    verdict: LogVerdict
    graphs: tuple[LoggedGraph, ...]
    expected: int
    at_least: bool
    classes: dict[GraphClass, int]
    """They sum to the number of graphs; the largest first."""
    breaks: tuple[LoggedBreak, ...]
    """Those that cause most graphs first."""
    recompiles: int


def answers(run: Run, digest: Digest) -> Answers | None:
    """None for a run that was not read from logs."""
    verdict = judge_log(run)
    if verdict is None:
        return None
    graphs = logged_graphs(run)
    counted = Counter(graph.kind for graph in graphs)
    order = list(MEANINGS)
    classes = sorted(counted.items(), key=lambda item: (-item[1], order.index(item[0])))
    return Answers(
        verdict=verdict,
        graphs=tuple(graphs),
        expected=expected_graphs(run, graphs),
        at_least=verdict.at_least or any(graph.cut for graph in graphs),
        classes=dict(classes),
        breaks=tuple(_breaks(run, digest, graphs)),
        recompiles=sum(frame.count for frame in digest.recompiles),
    )


def _breaks(run: Run, digest: Digest, graphs: list[LoggedGraph]) -> list[LoggedBreak]:
    caused = Counter(graph.because for graph in graphs)
    echoes = Counter(body.because for _, body in run.of(BreakEcho))
    written = {body.because: body for _, body in run.of(ReproWritten)}
    found = [_of_site(site, caused, echoes, written) for site in digest.sites]
    return sorted([*found, *_inferred(run, graphs)], key=lambda each: (-each.graphs, -each.events))


def _of_site(
    site: Site,
    caused: Counter[str | None],
    echoes: Counter[str | None],
    written: dict[str, ReproWritten],
) -> LoggedBreak:
    repro = next((written[event] for event in site.because if event in written), None)
    return LoggedBreak(
        file=site.file,
        line=site.line,
        function=site.function,
        source=site.source,
        gb_id=site.gb_id,
        reason=site.gb_type,
        events=site.events,
        echoes=sum(echoes[event] for event in site.because),
        graphs=sum(caused[event] for event in site.because),
        fingerprint=site.fingerprint,
        repro=repro.path if repro is not None else "",
        no_repro=repro.reason if repro is not None else "",
    )


def _inferred(run: Run, graphs: list[LoggedGraph]) -> list[LoggedBreak]:
    """Breaks of which only the rests of functions tell."""
    orphans = {graph.event for graph in graphs if graph.kind == "graph-break" and not graph.because}
    places: Counter[CodeRef] = Counter()
    for event in run.events:
        if event.id not in orphans:
            continue
        resumes = getattr(event.body, "resumes", ())
        frame = next(iter(resumes), getattr(event.body, "frame", None))
        if isinstance(frame, CodeRef) and frame.resumed_at is not None:
            places[frame] += 1
    return [
        LoggedBreak(
            file=code.file,
            line=code.resumed_at or code.line,
            function=code.function,
            source="",
            gb_id=None,
            reason=_NOT_TOLD,
            events=0,
            echoes=0,
            graphs=count,
            inferred=True,
        )
        for code, count in places.items()
    ]
