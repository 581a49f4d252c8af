"""Recompiles by function and cause: every guard that failed, not only the first."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from compilescope.findings.advice import Advice
from compilescope.findings.compile_cost import recompile_seconds
from compilescope.findings.remedy import Remedy
from compilescope.model.bodies import FailedGuard, GraphBreak, Recompile
from compilescope.model.event import Event
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, Frame, shown_code


class RecompileCause(msgspec.Struct, frozen=True, kw_only=True):
    """A guard that failed."""

    guard: str
    subject: str
    expected: str
    actual: str
    """The value that failed it first."""
    kind: str
    file: str | None
    line: int | None
    """The user's line that made Dynamo install the guard."""
    source: str
    count: int
    """In how many recompiles it failed."""
    also: tuple[str, ...] = ()
    """Other values of its kind that failed in the very same recompiles by the very same change: the
    key of every layer of a cache that grew."""
    seconds: float | None = None
    """Compile time of those recompiles; None where it was not told. Guards that failed together
    share it."""
    rule: str | None = None
    """The rule that explains it."""
    why: str = ""
    remedy: tuple[Remedy, ...] = ()
    """What a person can do by hand; `advice` says what to do first."""
    advice: tuple[Advice, ...] = ()
    """Best first. Empty until the fixes were asked."""


class RecompiledFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A function compiled more than once."""

    file: str
    line: int
    function: str
    count: int
    """How often it was compiled again."""
    seconds: float | None = None
    """Compile time of all that; None where it was not told."""
    resumed_at: int | None
    """For the part of the function after a graph break: the line at which it goes on."""
    limit_hit: bool
    """Dynamo gave up: from here on, calls that fit no compilation run eagerly."""
    causes: tuple[RecompileCause, ...]
    ranks: tuple[int, ...]
    because: tuple[str, ...]
    folded: int = 0
    """Cache entries, over all recompiles, of which only the first failed guard was compared with
    that of a listed one: there may be more behind a cause than its count says."""


_INDEX = re.compile(r"\[\d+\]")
_STACK_VALUE = re.compile(r"___stack\d+")
_Member = tuple[Event, Recompile]


def recompiled_frames(run: Run) -> list[RecompiledFrame]:
    """Most compile time first."""
    groups: dict[CodeRef, list[_Member]] = {}
    for event, body in run.of(Recompile):
        groups.setdefault(shown_code(body.frame, event.stack), []).append((event, body))
    broken_at = _expressions_at_breaks(run)
    spent = recompile_seconds(run)
    frames = [
        RecompiledFrame(
            file=code.file,
            line=code.line,
            function=code.function,
            resumed_at=code.resumed_at,
            count=sum(not body.refused for _, body in members),
            seconds=_seconds(spent, [event.id for event, _ in members]),
            limit_hit=any(body.refused == "limit" for _, body in members),
            causes=_causes(members, broken_at.get((code.file, code.resumed_at), ""), spent),
            ranks=tuple(sorted({event.rank for event, _ in members})),
            because=tuple(event.id for event, _ in members),
            folded=sum(_folded(body) for _, body in members),
        )
        for code, members in groups.items()
    ]
    shown = [frame for frame in frames if frame.count or frame.limit_hit]
    return sorted(shown, key=lambda frame: (-(frame.seconds or 0.0), -frame.count))


def _folded(body: Recompile) -> int:
    return body.unlisted + sum(entry.folded for entry in body.entries)


def _seconds(spent: dict[str, float], events: Iterable[str]) -> float | None:
    known = [spent[event] for event in events if event in spent]
    return round(sum(known), 3) if known else None


def _expressions_at_breaks(run: Run) -> dict[tuple[str, int | None], str]:
    """(file, line) -> the expression that broke there, where there is just one.

    After a break Dynamo calls its value `___stack0`; its author calls it `int(n)`.
    """
    found: dict[tuple[str, int | None], set[str]] = {}
    for event, _ in run.of(GraphBreak):
        for frame in event.stack:
            if frame.column is not None and frame.end_column is not None:
                text = frame.source[frame.column : frame.end_column]
                found.setdefault((frame.file, frame.line), set()).add(text)
    return {place: texts.pop() for place, texts in found.items() if len(texts) == 1}


def _place(failed: FailedGuard, event: Event) -> Frame | None:
    """The user's line behind a guard; the line that called, where torch's own code made it."""
    if failed.frame is not None and failed.frame.origin == "torch":
        return event.site or failed.frame
    return failed.frame


def _causes(
    members: list[_Member], broken: str, spent: dict[str, float]
) -> tuple[RecompileCause, ...]:
    first: dict[str, tuple[FailedGuard, Frame | None]] = {}
    hits: dict[str, set[str]] = {}
    for event, body in members:
        # The most recently used entry comes first: its guards are what changed since the last call.
        for entry in body.entries:
            for failed in entry.failed:
                first.setdefault(failed.subject, (failed, _place(failed, event)))
                hits.setdefault(failed.subject, set()).add(event.id)
    one = _families(first, hits)
    # The value of the broken expression is what Dynamo left on top of the stack.
    top = max(_STACK_VALUE.findall(" ".join(first)), default="") if broken else ""
    causes = [
        RecompileCause(
            guard=failed.guard.replace(top, broken) if top else failed.guard,
            subject=subject.replace(top, broken) if top else subject,
            expected=failed.expected,
            actual=failed.actual,
            kind=failed.kind,
            file=frame.file if frame else None,
            line=frame.line if frame else None,
            source=frame.source.strip() if frame else "",
            count=len(hits[subject]),
            also=tuple(others),
            seconds=_seconds(spent, hits[subject]),
        )
        for subject, others in one.items()
        for failed, frame in [first[subject]]
    ]
    return tuple(sorted(causes, key=lambda cause: (-(cause.seconds or 0.0), -cause.count)))


def _families(
    first: dict[str, tuple[FailedGuard, Frame | None]], hits: dict[str, set[str]]
) -> dict[str, list[str]]:
    """By the first value of each family, the others: fifty guards of one cause are one cause."""
    heads: dict[tuple[object, ...], str] = {}
    found: dict[str, list[str]] = {}
    for subject, (failed, _) in first.items():
        holder, of_size, size = subject.rpartition(".size()")
        family = _INDEX.sub("[N]", holder if of_size else subject)
        if "[N]" not in family:
            found[subject] = []
            continue
        if of_size:
            # Keys and values of one layer grow together.
            family = f"{family.rpartition('[N]')[0]} {size}"
        change = (failed.kind, failed.expected, failed.actual, frozenset(hits[subject]))
        head = heads.setdefault((family, *change), subject)
        found.setdefault(head, [])
        if head != subject:
            found[head].append(subject)
    return found
