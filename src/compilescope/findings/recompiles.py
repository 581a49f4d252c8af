"""Recompiles by function and cause: every guard that failed, not only the first."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import msgspec

from compilescope.findings.compile_ids import recompile_seconds
from compilescope.findings.finding import Finding
from compilescope.model.bodies import FailedGuard, GraphBreak, Recompile
from compilescope.model.body import FindingKind, Level
from compilescope.model.event import Event
from compilescope.model.fingerprint import fingerprint
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, Frame, shown_code
from compilescope.patterns import late


class RecompileFinding(Finding, frozen=True, kw_only=True):
    """A guard that failed, in a function that was compiled again because of it.

    `count` is in how many recompiles it failed, `seconds` the compile time of those: guards that
    failed together share it. `because` are all recompiles of the function.
    """

    guard: str
    """Empty where torch named none: the function alone is known."""
    subject: str
    expected: str
    actual: str
    """The value that failed it first."""
    guard_kind: str
    compiled: CodeRef
    """The function that was compiled again."""
    limit_hit: bool
    """Dynamo gave that function up."""
    is_placed: bool
    """The place is the user's line that made Dynamo install the guard, else the function's."""
    also: tuple[str, ...] = ()
    """Other values of its kind that failed in the very same recompiles by the very same change: the
    key of every layer of a cache that grew."""

    @property
    def kind(self) -> FindingKind:
        return "recompile"

    @property
    def is_named(self) -> bool:
        """Did torch name the guard?"""
        return bool(self.guard or self.subject)

    @property
    def rule_id(self) -> str:
        return f"recompile/{self.rule or self.guard_kind or 'unknown'}"

    @property
    def title(self) -> str:
        # No values here: the next run has others, and the cause is the same.
        return f"{self.function} recompiles" + (f": {self.subject}" if self.subject else "")

    @property
    def message(self) -> str:
        return self.why or self._change()

    @property
    def level(self) -> Level:
        return "error" if self.limit_hit else "warning"

    def _change(self) -> str:
        if not self.guard:
            return f"{self.function} was compiled more than once; torch reported no failed guard."
        if not (self.expected or self.actual):
            return f"The guard {self.guard} failed."
        expected, actual = self.expected or "?", self.actual or "?"
        return f"The guard {self.guard} failed: expected {expected}, got {actual}."


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
    causes: tuple[RecompileFinding, ...]
    ranks: tuple[int, ...]
    because: tuple[str, ...]
    folded: int = 0
    """Cache entries, over all recompiles, of which only the first failed guard was compared with
    that of a listed one: there may be more behind a cause than its count says."""

    @property
    def code(self) -> CodeRef:
        return CodeRef(self.file, self.line, self.function, self.resumed_at)


# What differs from run to run in Dynamo's names: addresses, ids, counters, lines to resume at.
_PASSING = late(r"0x[0-9a-fA-F]+|\b\d{9,}\b|(?<=___)\d+|(?<=__resume_at_)\d+_\d+")
_INDEX = late(r"\[\d+\]")
_STACK_VALUE = late(r"___stack\d+")
_Member = tuple[Event, Recompile]


def recompiled_frames(run: Run) -> list[RecompiledFrame]:
    """Most compile time first."""
    groups: dict[CodeRef, list[_Member]] = {}
    for event, body in run.of(Recompile):
        groups.setdefault(shown_code(body.frame, event.stack), []).append((event, body))
    if not groups:
        return []
    broken_at = _expressions_at_breaks(run)
    spent = recompile_seconds(run)
    root = run.header.root
    frames = [
        _frame(code, members, broken_at.get((code.file, code.resumed_at), ""), spent, root)
        for code, members in groups.items()
    ]
    shown = [frame for frame in frames if frame.count or frame.limit_hit]
    return sorted(shown, key=lambda frame: (-(frame.seconds or 0.0), -frame.count))


def _folded(body: Recompile) -> int:
    return body.unlisted + sum([entry.folded for entry in body.entries])


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


def recompile_findings(frame: RecompiledFrame, root: str) -> tuple[RecompileFinding, ...]:
    """The guards that made one function compile again; where torch named none, the function."""
    if frame.causes:
        return frame.causes
    unknown = RecompileFinding(
        guard="",
        subject="",
        expected="",
        actual="",
        guard_kind="",
        compiled=frame.code,
        limit_hit=frame.limit_hit,
        is_placed=False,
        file=frame.file,
        line=frame.line,
        function=frame.function,
        fingerprint=_fingerprint("", "", frame.file, frame.function, root),
        count=max(frame.count, int(frame.limit_hit)),
        ranks=frame.ranks,
        because=frame.because,
    )
    return (unknown,)


@functools.lru_cache(1 << 15)
def _fingerprint(kind: str, subject: str, file: str, function: str, root: str) -> str:
    """The value names the cause: which of its function's lines looks at it is no part of that."""
    subject = _PASSING.sub("N", subject)
    return fingerprint(f"recompile {kind} {subject}", Frame(file, 0, function), root)


@functools.lru_cache(1 << 10)
def _ranks(found: frozenset[int]) -> tuple[int, ...]:
    """In order; one tuple for all that have the same."""
    return tuple(sorted(found))


def _frame(
    code: CodeRef, members: list[_Member], broken: str, spent: dict[str, float], root: str
) -> RecompiledFrame:
    # Lists are made faster than generators, and a long run has tens of thousands of such frames.
    refused = [body.refused for _, body in members]
    because = tuple([event.id for event, _ in members])
    limit_hit = "limit" in refused
    ranks = _ranks(frozenset([event.rank for event, _ in members]))
    return RecompiledFrame(
        file=code.file,
        line=code.line,
        function=code.function,
        resumed_at=code.resumed_at,
        count=refused.count(""),
        seconds=_seconds(spent, because),
        limit_hit=limit_hit,
        causes=_causes(_Shared(code, limit_hit, ranks, because), members, broken, spent, root),
        ranks=ranks,
        because=because,
        folded=sum([_folded(body) for _, body in members]),
    )


class _Shared(msgspec.Struct, frozen=True):
    """What all causes of one function have."""

    code: CodeRef
    limit_hit: bool
    ranks: tuple[int, ...]
    because: tuple[str, ...]


def _causes(
    frame: _Shared,
    members: list[_Member],
    broken: str,
    spent: dict[str, float],
    root: str,
) -> tuple[RecompileFinding, ...]:
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
    code = frame.code
    causes = []
    for subject, others in one.items():
        failed, place = first[subject]
        named = subject.replace(top, broken) if top else subject
        file = (place.file if place else "") or code.file
        causes.append(
            RecompileFinding(
                guard=failed.guard.replace(top, broken) if top else failed.guard,
                subject=named,
                expected=failed.expected,
                actual=failed.actual,
                guard_kind=failed.kind,
                compiled=code,
                limit_hit=frame.limit_hit,
                is_placed=place is not None,
                file=file,
                line=(place.line if place else 0) or code.line,
                function=code.function,
                source=place.source.strip() if place else "",
                fingerprint=_fingerprint(failed.kind, named, file, code.function, root),
                count=len(hits[subject]),
                ranks=frame.ranks,
                because=frame.because,
                also=tuple(others),
                seconds=_seconds(spent, hits[subject]),
            )
        )
    if len(causes) > 1:
        causes.sort(key=lambda cause: (-(cause.seconds or 0.0), -cause.count))
    return tuple(causes)


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
