"""What differs between the ranks of one run, and where they first part ways.

Ranks that compile different graphs wait for each other at best and hang at worst.
"""

from __future__ import annotations

from itertools import zip_longest

import msgspec

from compilescope.model.bodies import (
    CompileFailed,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.model.event import Event
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef
from compilescope.rules.digest import Digest, digest
from compilescope.rules.findings import Finding, findings


class Step(msgspec.Struct, frozen=True, kw_only=True):
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


def compare_ranks(run: Run) -> RankReport | None:
    """None where there is but one rank."""
    ranks = sorted({event.rank for event in run.events})
    if len(ranks) < 2:
        return None
    narrowed = {rank: _of_rank(run, rank) for rank in ranks}
    steps = {rank: _steps(narrowed[rank]) for rank in ranks}
    first = ranks[0]
    divergences = [_first_divergence(rank, steps[first], steps[rank]) for rank in ranks[1:]]
    whole = findings(digest(run))
    return RankReport(
        ranks=tuple(_rank_digest(rank, digest(narrowed[rank])) for rank in ranks),
        divergences=tuple(found for found in divergences if found is not None),
        partial=tuple(finding for finding in whole if len(finding.ranks) < len(ranks)),
    )


def _of_rank(run: Run, rank: int) -> Run:
    return run.narrowed(lambda event: event.rank == rank)


def _rank_digest(rank: int, seen: Digest) -> RankDigest:
    return RankDigest(
        rank=rank,
        graphs=seen.graphs,
        sites=len(seen.sites),
        eager=len(seen.eager_frames),
        recompiles=sum(frame.count for frame in seen.recompiles),
        failures=len(seen.failures),
        compile_seconds=seen.compile_seconds,
    )


def _first_divergence(rank: int, first: list[Step], other: list[Step]) -> Divergence | None:
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


def _steps(run: Run) -> list[Step]:
    steps = []
    for event in run.events:
        what = _what(event)
        if what:
            steps.append(Step(what=what, event=event.id))
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
