"""The answers a log gives for an XLA device: how many graphs, how many would do, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.logged.device_breaks import UNREPORTED
from compilescope.knowledge.analysis.logged.fallbacks import FallbackOp, fallback_ops
from compilescope.knowledge.analysis.logged.graphs import (
    MEANINGS,
    GraphClass,
    LoggedGraph,
    count_of,
    logged_graphs,
)
from compilescope.knowledge.analysis.logged.verdict import LogVerdict, judge_log
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.rules.causes.device_words import DEVICE_RULES
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import ReproWritten, SourceChecked
from compilescope.record.logged import BreakEcho
from compilescope.record.run import Run

_AROUND = 3
"""Lines of the program before and after the one that is meant. Chosen: what a reader needs to know
the place again."""


class LoggedBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A graph break in the log, and the graphs that exist because of it."""

    file: str
    line: int
    function: str
    source: str
    lines: tuple[tuple[int, str], ...]
    """Some lines around it, each with its number; empty where the file is not at hand."""
    gb_id: str | None
    reason: str
    events: int
    """How often the log reports it, echoes apart."""
    echoes: int
    graphs: int
    inferred: bool = False
    """No line of Dynamo's tells of it: functions go on at that line, so one was there."""
    rule: str = ""
    """The rule that explains it: `scalar-extraction`, `xla/sync`; empty where none does."""
    why: str = ""
    remedy: str = ""
    """What to do first, in words."""
    context: str = ""
    """Of a break of torch_xla's: the helpers it went through, the log's line, how often it ran."""
    fingerprint: str = ""
    repro: str = ""
    """A script that shows such a break, within the run's folder."""
    no_repro: str = ""
    """Why there is none, or what could not be verified of it."""


class LoggedBreaks(Sequence[LoggedBreak]):
    """Those that cause most graphs first. Each is made when it is asked for: a log may have 100,000
    of them, a summary counts them and a page shows a few."""

    def __init__(
        self, run: Run, sites: Sequence[BreakFinding], graphs: list[LoggedGraph], sources: Sources
    ) -> None:
        self._sites = sites
        self._sources = sources
        # A graph that torch_xla ended for a reason of its own is its own cause.
        self._caused = Counter(graph.because or graph.event for graph in graphs)
        self._echoes = Counter(body.because for _, body in run.of(BreakEcho))
        self._written = {body.because: body for _, body in run.of(ReproWritten)}

    def __len__(self) -> int:
        return len(self._sites)

    @overload
    def __getitem__(self, at: int) -> LoggedBreak: ...
    @overload
    def __getitem__(self, at: slice) -> list[LoggedBreak]: ...
    def __getitem__(self, at: int | slice) -> LoggedBreak | list[LoggedBreak]:
        found = self._in_order[at]
        return list(map(self._made, found)) if isinstance(found, list) else self._made(found)

    @cached_property
    def _in_order(self) -> list[BreakFinding]:
        return sorted(self._sites, key=lambda site: (-self._graphs(site), -_events(site)))

    def _graphs(self, site: BreakFinding) -> int:
        # Most logs have none of these.
        return sum([self._caused[event] for event in site.because]) if self._caused else 0

    def _made(self, site: BreakFinding) -> LoggedBreak:
        told = [self._written[each] for each in site.because if each in self._written]
        repro = told[0] if told else None
        return LoggedBreak(
            file=site.file,
            line=site.line,
            function=site.function,
            source=site.source,
            lines=tuple(_around(self._sources, site)),
            gb_id=site.gb_id,
            reason=site.gb_type,
            events=_events(site),
            echoes=sum([self._echoes[event] for event in site.because]) if self._echoes else 0,
            graphs=self._graphs(site),
            inferred=site.rule == UNREPORTED,
            rule=site.rule or "",
            why=site.why,
            remedy=site.first_step,
            context=site.context if site.rule in DEVICE_RULES else "",
            fingerprint=site.fingerprint,
            repro=repro.path if repro is not None else "",
            no_repro=repro.reason if repro is not None else "",
        )


def _events(site: BreakFinding) -> int:
    return 0 if site.rule == UNREPORTED else site.count


class LoggedFile(msgspec.Struct, frozen=True):
    """A file of the program that was at hand when the log was read."""

    file: str
    """As the log calls it."""
    here: str
    agrees: int
    """Lines that were compared with the log and agree."""
    problem: str
    """How it differs; then none of its lines are shown."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The log's answers."""

    verdict: LogVerdict
    graphs: tuple[LoggedGraph, ...]
    expected: int
    at_least: bool
    classes: dict[GraphClass, int]
    """They sum to the number of graphs; the largest first."""
    breaks: LoggedBreaks
    recompiles: int
    fallback_ops: tuple[FallbackOp, ...] = ()
    """Operators without a lowering that the log names."""
    source_files: tuple[LoggedFile, ...] = ()
    """Files of the program that were at hand when the log was read."""


def answers(run: Run, digest: Digest) -> Answers | None:
    """None for a run that was not read from logs."""
    verdict = judge_log(run)
    if verdict is None:
        return None
    sources = Sources(run)
    graphs = logged_graphs(run, sources)
    counted = Counter(graph.kind for graph in graphs)
    order = list(MEANINGS)
    classes = sorted(counted.items(), key=lambda item: (-item[1], order.index(item[0])))
    return Answers(
        verdict=verdict,
        graphs=tuple(graphs),
        expected=count_of(run, graphs).expected,
        at_least=verdict.at_least or any(graph.cut for graph in graphs),
        classes=dict(classes),
        breaks=LoggedBreaks(run, digest.sites, graphs, sources),
        recompiles=sum(frame.count for frame in digest.recompiles),
        fallback_ops=tuple(fallback_ops(run, sources)),
        source_files=tuple(
            LoggedFile(body.file, body.here, body.agrees, body.problem)
            for _, body in run.of(SourceChecked)
        ),
    )


def _around(sources: Sources, site: BreakFinding) -> Iterator[tuple[int, str]]:
    lines = sources.lines(site.file) if sources.has(site.file) else ()
    if 0 < site.line <= len(lines):
        first, last = max(1, site.line - _AROUND), min(len(lines), site.line + _AROUND)
        yield from ((number, lines[number - 1]) for number in range(first, last + 1))
