"""What differs between the ranks of one run, and where they first part ways.

Ranks that compile different graphs wait for each other at best and hang at worst.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

import msgspec

from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.logged.device_breaks import device_sites
from compilescope.knowledge.analysis.logged.graphs import graph_count
from compilescope.knowledge.findings.breaks import break_sites
from compilescope.knowledge.findings.eager import eager_frames
from compilescope.knowledge.findings.failures import failures
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import recompiled_frames
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import (
    CompileFailed,
    CompileTime,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    JobEnded,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.run import Run, is_standing
from compilescope.record.stack import CodeRef

_MOST_RANKS = 1000
"""Compared with the first one. Chosen: it bounds the time, which grows with ranks and steps."""


class RankStep(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the compiler did, in words that are alike on ranks that did the same."""

    what: str
    event: str
    """Its event."""


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rank first did something else than the lowest rank."""

    rank: int
    step: int
    """How many steps both had done alike."""
    expected: str
    """What the lowest rank did; empty where it had nothing more to do."""
    found: str
    because: tuple[str, ...]


class RankDigest(msgspec.Struct, frozen=True, kw_only=True):
    """One rank in numbers."""

    rank: int
    graphs: int
    sites: int
    eager: int
    recompiles: int
    failures: int
    compile_seconds: float


class RankReport(msgspec.Struct, frozen=True, kw_only=True):
    """All ranks side by side."""

    ranks: tuple[RankDigest, ...]
    divergences: tuple[Divergence, ...]
    partial: tuple[Finding, ...]
    """Causes that only some ranks met."""
    left_out: int = 0
    """Ranks beyond as many as are compared."""


def compare_ranks(run: Run, causes: Iterable[Finding] | None = None) -> RankReport | None:
    """None where there is but one rank. `causes` are all of the run's, where they are known."""
    every = sorted({event.rank for event in run.events})
    if len(every) < 2:
        return None
    ranks = every[:_MOST_RANKS]
    narrowed = _by_rank(run, ranks)
    steps = {rank: _steps(narrowed[rank]) for rank in ranks}
    first = ranks[0]
    divergences = [_first_divergence(rank, steps[first], steps[rank]) for rank in ranks[1:]]
    whole = findings(digest(run)) if causes is None else causes
    sources = Sources(run)
    return RankReport(
        ranks=tuple(_rank_digest(rank, narrowed[rank], sources) for rank in ranks),
        divergences=tuple(found for found in divergences if found is not None),
        partial=tuple(finding for finding in whole if len(finding.ranks) < len(every)),
        left_out=len(every) - len(ranks),
    )


def _by_rank(run: Run, ranks: list[int]) -> dict[int, Run]:
    """As `Run.narrowed` to each rank, in one pass over the events."""
    events: dict[int, dict[str, Event]] = {rank: {} for rank in ranks}
    standing: dict[int, list[Event]] = {}
    for event in run.events:
        if event.rank in events:
            events[event.rank][event.id] = event
        if is_standing(event):
            standing.setdefault(event.pid, []).append(event)
    for own in events.values():
        for pid in {event.pid for event in own.values()}:
            own.update((event.id, event) for event in standing.get(pid, ()))
    return {
        rank: Run(
            run.header,
            list(own.values()),
            run.artifacts,
            unread=run.unread,
            unread_files=run.unread_files,
            torn=run.torn,
            live=run.live,
        )
        for rank, own in events.items()
    }


def _rank_digest(rank: int, run: Run, sources: Sources) -> RankDigest:
    """As its digest counts; why each cause is one is nothing that a number needs."""
    jobs = [body for _, body in run.of(JobEnded)]
    compile_ns = sum(body.duration_ns for _, body in run.of(CompileTime))
    return RankDigest(
        rank=rank,
        graphs=graph_count(run, sources).graphs + sum(job.graphs or 0 for job in jobs),
        sites=len(break_sites(run)) + len(device_sites(run, sources)),
        eager=len(eager_frames(run)),
        recompiles=sum(frame.count for frame in recompiled_frames(run)),
        failures=len(failures(run)),
        compile_seconds=round(compile_ns / 1e9 + sum(j.compile_seconds or 0 for j in jobs), 3),
    )


def _first_divergence(rank: int, first: list[RankStep], other: list[RankStep]) -> Divergence | None:
    for number, (expected, found) in enumerate(zip_longest(first, other)):
        if expected is not None and found is not None and expected.what == found.what:
            continue
        return Divergence(
            rank=rank,
            step=number,
            expected=expected.what if expected else "",
            found=found.what if found else "",
            because=tuple(step.event for step in (expected, found) if step),
        )
    return None


def _steps(run: Run) -> list[RankStep]:
    steps = []
    for event in run.events:
        what = _what(event)
        if what:
            steps.append(RankStep(what=what, event=event.id))
    return steps


def _what(event: Event) -> str:
    body = event.body
    if isinstance(body, GraphCaptured):
        if body.stage != "dynamo":
            return ""
        return f"compiled {_code(body.frame)} into a graph of {body.ops} ops"
    if isinstance(body, GraphBreak):
        site = event.site
        at = f" at line {site.line}" if site else ""
        return f"broke the graph of {_code(body.frame)}{at}: {body.gb_type}"
    if isinstance(body, Recompile):
        failed = [guard for entry in body.entries[:1] for guard in entry.failed]
        why = f": {failed[0].subject} was {failed[0].actual}" if failed else ""
        return f"recompiled {_code(body.frame)}{why}"
    if isinstance(body, FrameSkipped):
        return f"fell back to eager for {_code(body.frame)}: {body.cause}"
    if isinstance(body, CompileFailed):
        return f"failed to compile {_code(body.frame)}: {body.error}"
    return ""


def _code(code: CodeRef | None) -> str:
    if code is None:
        return "a function"
    name = code.file.replace("\\", "/").rsplit("/", 1)[-1]
    part = f", from line {code.resumed_at}" if code.resumed_at else ""
    return f"{code.function} ({name}:{code.line}{part})"
