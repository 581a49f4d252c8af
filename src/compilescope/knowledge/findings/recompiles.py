"""Recompiles by function and cause: every guard that failed, not only the first."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Iterable

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.findings.changes import (
    GuardChange,
    folded,
    is_mode,
    is_number,
    is_size,
    nearest_change,
)
from compilescope.knowledge.findings.compile_ids import (
    CompileKey,
    calls_after_recompiles,
    compile_key,
    recompile_seconds,
)
from compilescope.knowledge.findings.finding import Finding, Toll
from compilescope.knowledge.findings.versions import versions_used_once
from compilescope.record.bodies import (
    CompileFailed,
    FailedGuard,
    GraphBreak,
    Recompile,
)
from compilescope.record.body import FindingKind, Level
from compilescope.record.event import Event
from compilescope.record.fingerprint import fingerprint
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, shown_code


class RecompileFinding(Finding, frozen=True, kw_only=True):
    """Why a function was compiled again: a guard that failed, and those that failed with it.

    A recompile is one cause, however many guards failed. `count` is how many there were (on the
    rank that had most), `seconds` what they cost, `because` their events: no two causes share any.
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
    """The same value of other layers or instances: `self.blocks[1].training` and so on."""
    together: tuple[RecompileFinding, ...] = ()
    """Other guards that failed in these recompiles, with no cost of their own."""
    calls_after: int | None = None
    """Calls of the compiled region since its last such recompile; None where nobody counted."""
    fixed_again: int = 0
    """In so many of these a version that was made for a change of the same value did not fit again:
    a size did not become free."""
    compiled_in: str = ""
    """Where the number was dynamic, and the value of an expression of it was compiled in after all:
    the guard on that."""
    replaced: bool = False
    """The version before served a single call and was never asked for again."""
    needed: bool = False
    """The program needs both versions: they were compiled once and are reused. No loss. Nor is one
    for an input that eager mode would refuse too: what is lost there is the failure's."""

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
        about = folded(self.subject) if self.also else self.subject
        return f"{self.function} recompiles" + (f": {about}" if about else "")

    @property
    def message(self) -> str:
        return self.why or self._change()

    @property
    def level(self) -> Level:
        return "error" if self.limit_hit else "warning"

    @property
    def toll(self) -> Toll:
        if self.limit_hit:
            return Toll.EAGER
        if self.calls_after is not None and self.calls_after > self.count:
            return Toll.ONCE
        return Toll.AGAIN if self.count > 1 else Toll.EVERY_CALL

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

    @property
    def guards(self) -> tuple[RecompileFinding, ...]:
        """All that failed, those that explain the others first."""
        return (*self.causes, *(each for cause in self.causes for each in cause.together))

    @property
    def avoidable(self) -> int:
        """How often it was compiled again though the program did not need it."""
        return self.count - sum([cause.count for cause in self.causes if cause.needed])


# What differs from run to run in Dynamo's names: addresses, ids, counters, lines to resume at.
_PASSING = late(r"0x[0-9a-fA-F]+|\b\d{9,}\b|(?<=___)\d+|(?<=__resume_at_)\d+_\d+")
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
    recorded = _Recorded(
        recompile_seconds(run),
        calls_after_recompiles(run),
        versions_used_once(run),
        _wrong_inputs(run),
    )
    root = run.header.root
    frames = [
        _frame(code, members, broken_at.get((code.file, code.resumed_at), ""), recorded, root)
        for code, members in groups.items()
    ]
    shown = [frame for frame in frames if frame.count or frame.limit_hit]
    return sorted(shown, key=lambda frame: (-(frame.seconds or 0.0), -frame.count))


def _wrong_inputs(run: Run) -> set[CompileKey]:
    keys = (
        compile_key(event, event.compile_id)
        for event, body in run.of(CompileFailed)
        if body.error == "TorchRuntimeError"
    )
    return {key for key in keys if key is not None}


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
        seconds=frame.seconds,
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
    code: CodeRef, members: list[_Member], broken: str, run: _Recorded, root: str
) -> RecompiledFrame:
    # Lists are made faster than generators, and a long run has tens of thousands of such frames.
    refused = [body.refused for _, body in members]
    because = tuple([event.id for event, _ in members])
    limit_hit = "limit" in refused
    shared = _Shared(code, limit_hit, broken, root, run)
    return RecompiledFrame(
        file=code.file,
        line=code.line,
        function=code.function,
        resumed_at=code.resumed_at,
        count=_most_of_a_rank([event for event, body in members if not body.refused]),
        seconds=_seconds(run.spent, because),
        limit_hit=limit_hit,
        causes=_causes(shared, members),
        ranks=_ranks_of(members),
        because=because,
        folded=sum([_folded(body) for _, body in members]),
    )


def _ranks_of(members: list[_Member]) -> tuple[int, ...]:
    return _ranks(frozenset([event.rank for event, _ in members]))


def _most_of_a_rank(events: list[Event]) -> int:
    """Ranks do the same: what each of them did once happened once."""
    counts: dict[int, int] = {}
    for event in events:
        counts[event.rank] = counts.get(event.rank, 0) + 1
    return max(counts.values(), default=0)


class _Recorded(msgspec.Struct, frozen=True):
    """What a run tells of its recompiles, by their events' ids."""

    spent: dict[str, float]
    calls_after: dict[str, int]
    used_once: set[CompileKey]
    wrong: set[CompileKey]
    """Compilations that failed as eager mode would: what was passed is wrong."""


class _Shared(msgspec.Struct, frozen=True):
    """What all causes of one function have."""

    code: CodeRef
    limit_hit: bool
    broken: str
    root: str
    run: _Recorded


def _causes(frame: _Shared, members: list[_Member]) -> tuple[RecompileFinding, ...]:
    """One for each value that explains some of the recompiles."""
    changes = [
        change for event, body in members if (change := nearest_change(event, body)) is not None
    ]
    # What another version is nearest to later on was asked for again, but for that other change.
    asked = Counter(change.nearest for change in changes)
    used_once = {key for key in frame.run.used_once if asked[key] == 1}
    groups: dict[str, list[GuardChange]] = {}
    for change in changes:
        groups.setdefault(folded(change.failed[0].subject), []).append(change)
    causes = []
    for group in groups.values():
        if all(each.body.refused for each in group) and len(groups) > 1:
            continue  # The limit was used up by the others.
        causes.append(_cause(frame, group, used_once))
    if len(causes) > 1:
        causes.sort(key=lambda cause: (-(cause.seconds or 0.0), -cause.count))
    total = sum([cause.count for cause in causes])
    # Without the break before it there would be no such value to compile for.
    return tuple(
        [cause if _is_of_break(frame, cause) else _judged(cause, total) for cause in causes]
    )


def _is_of_break(frame: _Shared, cause: RecompileFinding) -> bool:
    return bool(frame.broken) and frame.broken in cause.subject


def _cause(
    frame: _Shared, group: list[GuardChange], used_once: set[CompileKey]
) -> RecompileFinding:
    first: dict[str, tuple[FailedGuard, Frame | None]] = {}
    same: dict[str, list[str]] = {}
    """By family, its values in the order in which they failed."""
    hits: dict[str, set[str]] = {}
    for change in group:
        for each in change.failed:
            first.setdefault(each.subject, (each, _place(each, change.event)))
            family = same.setdefault(folded(each.subject), [])
            if each.subject not in family:
                family.append(each.subject)
            hits.setdefault(folded(each.subject), set()).add(change.event.id)
    # The value of the broken expression is what Dynamo left on top of the stack.
    top = max(_STACK_VALUE.findall(" ".join(first)), default="") if frame.broken else ""
    made = [_of_family(frame, first, family, top) for family in same.values()]
    led, *others = made
    events = [change.event for change in group]
    accepted = [change.event for change in group if not change.body.refused]
    because = tuple([event.id for event in events])
    after = frame.run.calls_after.get(because[-1])
    together = [
        msgspec.structs.replace(each, count=len(hits[family]))
        for each, family in zip(others, [*same][1:], strict=True)
    ]
    wrong = all(compile_key(event, event.compile_id) in frame.run.wrong for event in events)
    return msgspec.structs.replace(
        led,
        needed=wrong and not frame.limit_hit,
        # One that the limit refused left no other trace where it was the first.
        count=_most_of_a_rank(accepted) or 1,
        ranks=_ranks(frozenset([event.rank for event in events])),
        because=because,
        together=tuple(together[:_MOST_TOGETHER]),
        seconds=_seconds(frame.run.spent, because),
        calls_after=after,
        fixed_again=_fixed_again(group),
        compiled_in=_compiled_in(group, led.subject),
        replaced=any(change.nearest in used_once for change in group),
    )


_MOST_TOGETHER = 32
"""Values that changed with another. Chosen: nobody reads more."""


def _of_family(
    frame: _Shared,
    first: dict[str, tuple[FailedGuard, Frame | None]],
    family: list[str],
    top: str,
) -> RecompileFinding:
    subject, *others = family
    failed, place = first[subject]
    code = frame.code
    named = subject.replace(top, frame.broken) if top else subject
    file = (place.file if place else "") or code.file
    known_as = folded(named) if others else named
    return RecompileFinding(
        guard=failed.guard.replace(top, frame.broken) if top else failed.guard,
        subject=named,
        expected=failed.expected,
        actual=failed.actual,
        guard_kind=failed.kind,
        compiled=code,
        limit_hit=frame.limit_hit,
        is_placed=place is not None,
        file=file,
        line=(place.line if place else 0) or code.line,
        # Where torch wraps a function, its code is torch's: the guard's line is in the function.
        function=place.function if code.is_call and place is not None else code.function,
        source=place.source.strip() if place else "",
        fingerprint=_fingerprint(failed.kind, known_as, file, code.function, frame.root),
        also=tuple(others),
    )


_MOST_STATES = 3
"""Recompiles for one value that a program may need. A mode, a dtype or an optional value has two
states, and another one may have two for each. Of any other value one change is enough to say that
there are two of them."""
_SPECIAL = ("0", "1")


def _fixed_again(group: list[GuardChange]) -> int:
    made = {compile_key(change.event, change.event.compile_id) for change in group}
    ordinary = [change for change in group if change.failed[0].actual not in _SPECIAL]
    return sum([change.nearest in made for change in ordinary])


_VALUE_OF = late(r"^\(.+\) == -?[\d.]+(?:e-?\d+)?$")


def _compiled_in(group: list[GuardChange], subject: str) -> str:
    """Dynamo takes the value of an expression (`1 - m`) where an operator takes no symbol."""
    if is_size(subject):
        return ""
    guards = [
        each.guard
        for change in group
        for each in change.failed
        if each.kind == "SHAPE" and each.subject == subject and _VALUE_OF.match(each.guard)
    ]
    return guards[0] if guards else ""


_STATES = ("True", "False", "None")


def _judged(cause: RecompileFinding, total: int) -> RecompileFinding:
    """Whether the program needs the versions it compiled. The evidence: each situation was compiled
    once and used again, and then there were at least as many calls as versions that compiled
    nothing."""
    mode = is_mode(cause.subject, cause.guard_kind)
    if mode and not cause.fixed_again and not cause.limit_hit:
        # Nothing else could have served it, though the program may have ended there. Several
        # objects that share the code have as many.
        return msgspec.structs.replace(cause, needed=True)
    if cause.limit_hit or cause.calls_after is None or cause.calls_after <= total:
        return cause
    sized = is_of_size(cause) or (is_number(cause.expected) and is_number(cause.actual))
    is_dtype = cause.subject.endswith(".dtype")
    if sized:
        # Of each situation: a size or a number is fixed at first, and free after it changed.
        most = 0 if cause.fixed_again else cause.count
    elif cause.expected in _STATES or cause.actual in _STATES or is_dtype:
        most = _MOST_STATES if cause.fixed_again else cause.count
    else:
        most = 1
    is_wanted = sized or is_dtype or mode
    needed = 0 < cause.count <= most and (is_wanted or not cause.replaced)
    return msgspec.structs.replace(cause, needed=needed)


def stays_lost(cause: RecompileFinding) -> bool:
    """Of a run that goes on: is it a loss, however often what was compiled is called from here?"""
    reused = msgspec.structs.replace(cause, calls_after=sys.maxsize, replaced=False)
    return not (cause.needed or _judged(reused, 0).needed)


def is_of_size(cause: RecompileFinding) -> bool:
    return is_size(cause.subject)


def count_strictly(frames: Iterable[RecompiledFrame]) -> tuple[RecompiledFrame, ...]:
    """As if the program needed one version of each function."""
    return tuple(
        msgspec.structs.replace(
            frame,
            causes=tuple(msgspec.structs.replace(each, needed=False) for each in frame.causes),
        )
        for frame in frames
    )
