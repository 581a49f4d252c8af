"""What one thread did when: bars for compilations, their attempts and phases, and single moments.

Two sources tell of a compilation: the event at its end, and the phases that torch timed. They are
joined by compile id and time, since one id may be compiled forward, then backward, and tuned
later on. Moments are breaks, recompiles, failures, and what the caches answered.

Invariant: each bar lies within its parent, whatever the clocks said.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable
from typing import Any, Generic, Literal, TypeVar

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.cache_lookups import CACHE_NAMES
from compilescope.knowledge.findings.compile_ids import CompileKey
from compilescope.record.bodies import (
    CacheAccess,
    CompileFailed,
    CompileTime,
    CudagraphSkip,
    FrameSkipped,
    GraphBreak,
    Phase,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef

T = TypeVar("T")


class TimeStretch(msgspec.Struct, Generic[T]):
    """Something that took time, and where it lies among the others."""

    start_ns: int
    end_ns: int
    subject: T
    rank: int = 0
    """Of two that take exactly the same time, the lower one encloses the other."""
    depth: int = 0
    parent: int | None = None
    """Index of the one that it lies in."""
    self_ns: int = 0
    """Its time outside those within it."""


def nested(stretches: Iterable[TimeStretch[T]]) -> list[TimeStretch[T]]:
    """In order of start, outer ones first, each within its parent and after its elder siblings.

    Clocks are set back at times, and two sources may disagree by microseconds: a stretch that
    begins within another and ends after it is cut at that one's end.
    """
    ordered = sorted(stretches, key=lambda s: (s.start_ns, -s.end_ns, s.rank))
    open_ones: list[tuple[int, TimeStretch[T]]] = []
    for number, stretch in enumerate(ordered):
        # Without calls for each: a long run has some hundred thousand of them, twice.
        start, end = stretch.start_ns, stretch.end_ns
        if end < start:
            stretch.end_ns = end = start
        while open_ones:
            at, outer = open_ones[-1]
            outer_end = outer.end_ns
            # One without length lies in another at its very end only if that has no length either.
            if start < outer_end or start == end == outer.start_ns == outer_end:
                stretch.parent = at
                if end > outer_end:
                    stretch.end_ns = end = outer_end
                outer.self_ns -= end - start
                break
            open_ones.pop()
        stretch.depth = len(open_ones)
        stretch.self_ns = end - start
        open_ones.append((number, stretch))
    return ordered


_ATTEMPT = late(r"^compile_attempt_(\d{1,9})$")
_LATEST_NS = 1_000_000_000
"""How much later than its last phase a compilation may be told of. Chosen: long enough for a busy
machine, short enough not to take another compilation's."""
_MOST_TOLD = 200
"""Compilations of one id, among which the one is looked for that a phase belongs to. Chosen: it
bounds the time for records that repeat one id without end."""


class TimelineBar(msgspec.Struct, frozen=True, kw_only=True):
    """Something that took time."""

    kind: Literal["compilation", "attempt", "phase"]
    name: str
    """The function, the attempt, or torch's name of the phase."""
    start_ns: int
    end_ns: int
    depth: int = 0
    self_ns: int = 0
    """Its time outside the bars within it."""
    compile_id: str | None = None
    """Without the attempt."""
    key: CompileKey | None = None
    """The compilation it is or belongs to: ids begin anew in each process and after a reset."""
    code: CodeRef | None = None
    """The function that is compiled."""
    direction: Literal["forward", "backward"] = "forward"
    ok: bool | None = None
    """Of a compilation; None where it was not told."""
    reason: str = ""
    """Why Dynamo traced the function again from its start."""
    detail: str = ""
    ended: bool = True
    """False where its end was not seen."""

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


class ThreadSeen(msgspec.Struct, kw_only=True):
    """What was seen of one thread."""

    times: list[tuple[CompileKey | None, int, CompileTime]] = []
    """With the moment at which each was told."""
    phases: list[tuple[CompileKey | None, Phase]] = []
    heard: dict[CompileKey, tuple[int, int]] = {}
    """When a compilation was first and last heard of."""


class RunSeen(msgspec.Struct, kw_only=True):
    """What all threads know together."""

    codes: dict[CompileKey, CodeRef] = {}
    timed: set[CompileKey] = set()
    """Compilations whose end was told."""
    phased: set[CompileKey] = set()
    """Compilations that have phases."""


class CompilationBar(msgspec.Struct, kw_only=True):
    """One compilation, with the time of the phases that belong to it."""

    key: CompileKey | None
    start_ns: int
    end_ns: int
    told: CompileTime | None = None
    told_ns: int = 0
    last_attempt: int = 0
    ended: bool = True


_PhaseStretch = TimeStretch[tuple[CompileKey | None, Phase]]


def bars_of(seen: ThreadSeen, run: RunSeen) -> tuple[list[TimelineBar], list[CompilationBar]]:
    """The bars, well nested and outer ones first; and the compilations among them."""
    phases: list[_PhaseStretch] = nested(
        TimeStretch(phase.start_ns, phase.start_ns + phase.duration_ns, (key, phase), phase.depth)
        for key, phase in seen.phases
    )
    compilations = [
        CompilationBar(key=key, start_ns=ns - told.duration_ns, end_ns=ns, told=told, told_ns=ns)
        for key, ns, told in seen.times
    ]
    owners = _owners(phases, compilations, run)
    for key, (first, last) in seen.heard.items():
        if key not in run.timed and key not in run.phased:
            compilations.append(CompilationBar(key=key, start_ns=first, end_ns=last, ended=False))
    stretches: list[TimeStretch[tuple[CompilationBar | None, _PhaseStretch | None]]] = [
        TimeStretch(c.start_ns, c.end_ns, (c, None), -1) for c in compilations
    ]
    stretches += [
        TimeStretch(phase.start_ns, phase.end_ns, (owner, phase), phase.depth)
        for phase, owner in zip(phases, owners, strict=True)
    ]
    return [_bar(stretch, run) for stretch in nested(stretches)], compilations


def _owners(
    phases: list[_PhaseStretch], compilations: list[CompilationBar], run: RunSeen
) -> list[CompilationBar | None]:
    """For each phase the compilation that it belongs to, which grows to hold it."""
    roots = _roots(phases)
    owned = _owners_of_roots([phases[n] for n in dict.fromkeys(roots)], compilations, run)
    by_root = dict(zip(dict.fromkeys(roots), owned, strict=True))
    owners = [by_root[root] for root in roots]
    for stretch, owner in zip(phases, owners, strict=True):
        if owner is not None:
            if stretch.start_ns < owner.start_ns:
                owner.start_ns = stretch.start_ns
            if stretch.end_ns > owner.end_ns:
                owner.end_ns = stretch.end_ns
            attempt = _attempt(stretch.subject[1].name)
            if attempt is not None and attempt > owner.last_attempt:
                owner.last_attempt = attempt
    return owners


def _roots(phases: list[_PhaseStretch]) -> list[int]:
    """For each phase the outermost one around it that is of the same compilation."""
    roots: list[int] = []
    for number, stretch in enumerate(phases):
        key = stretch.subject[0]
        root = number
        if stretch.parent is not None:
            above = roots[stretch.parent]
            if key is None or key == phases[above].subject[0]:
                root = above
        roots.append(root)
    return roots


def _owners_of_roots(
    roots: list[_PhaseStretch], compilations: list[CompilationBar], run: RunSeen
) -> list[CompilationBar | None]:
    by_key: dict[CompileKey | None, list[CompilationBar]] = {}
    for compilation in compilations:
        by_key.setdefault(compilation.key, []).append(compilation)
    owners = [_overlapping(root, by_key.get(root.subject[0], [])) for root in roots]
    taken = {id(owner) for owner in owners if owner is not None}
    for number, root in enumerate(roots):
        key, phase = root.subject
        if owners[number] is not None or key is None:
            continue
        if key in run.timed:
            owners[number] = _told_late(root, by_key.get(key, []), taken)
        else:
            # A compilation within another is not told of by itself.
            owner = CompilationBar(
                key=key, start_ns=root.start_ns, end_ns=root.end_ns, ended=phase.ended
            )
            compilations.append(owner)
            owners[number] = owner
    return owners


def _overlapping(root: _PhaseStretch, told: list[CompilationBar]) -> CompilationBar | None:
    """The first that ended after the phase began, unless it began only after the phase."""
    number = bisect.bisect_left(told, root.start_ns, key=lambda c: c.told_ns)
    if number == len(told) or told[number].start_ns > root.end_ns:
        return None
    return told[number]


def _told_late(
    root: _PhaseStretch, told: list[CompilationBar], taken: set[int]
) -> CompilationBar | None:
    """A compilation is told of when it has ended: on a busy machine that takes a while."""
    first = bisect.bisect_left(told, root.end_ns, key=lambda c: c.told_ns)
    for one in told[first : first + _MOST_TOLD]:
        if id(one) in taken:
            continue
        longest = one.end_ns - one.start_ns
        if 0 <= one.start_ns - root.end_ns <= _LATEST_NS and root.end_ns - root.start_ns <= longest:
            # How long it took is sure, and the phase tells when.
            one.start_ns, one.end_ns = root.start_ns, root.start_ns + longest
            return one
    return None


@functools.lru_cache(maxsize=1000)
def _attempt(name: str) -> int | None:
    """Its number, where a phase is one; thousands of phases have a few names."""
    found = _ATTEMPT.match(name)
    return int(found[1]) if found else None


def _bar(
    stretch: TimeStretch[tuple[CompilationBar | None, _PhaseStretch | None]], run: RunSeen
) -> TimelineBar:
    """Made once its place among the others is known."""
    owner, phase = stretch.subject
    if phase is not None:
        return _part(stretch, *phase.subject, owner, run)
    assert owner is not None
    return _whole(stretch, owner, run)


def _whole(stretch: TimeStretch[Any], compilation: CompilationBar, run: RunSeen) -> TimelineBar:
    told, key = compilation.told, compilation.key
    code = run.codes.get(key) if key is not None else None
    if code is None and told is not None:
        code = told.frame
    return TimelineBar(
        kind="compilation",
        name=code.function if code is not None else "unknown function",
        start_ns=stretch.start_ns,
        end_ns=stretch.end_ns,
        depth=stretch.depth,
        self_ns=stretch.self_ns,
        compile_id=key[2] if key is not None else None,
        key=key,
        code=code,
        direction=told.phase if told is not None else "forward",
        ok=told.ok if told is not None else None,
        reason="; ".join(first_lines(told.restarts)) if told is not None else "",
        ended=compilation.ended,
    )


def _part(
    stretch: TimeStretch[Any],
    key: CompileKey | None,
    phase: Phase,
    owner: CompilationBar | None,
    run: RunSeen,
) -> TimelineBar:
    if owner is not None:
        key = owner.key
    told = owner.told if owner is not None else None
    attempt = _attempt(phase.name)
    reason = ""
    if (
        attempt is not None
        and owner is not None
        and told is not None
        and attempt < owner.last_attempt
    ):
        # torch keeps the reasons as a set: of several it is not known which was whose.
        reason = first_lines(told.restarts)[0] if len(told.restarts) == 1 else ""
    return TimelineBar(
        kind="phase" if attempt is None else "attempt",
        name=phase.name if attempt is None else f"attempt {attempt + 1}",
        start_ns=stretch.start_ns,
        end_ns=stretch.end_ns,
        depth=stretch.depth,
        self_ns=stretch.self_ns,
        compile_id=key[2] if key is not None else None,
        key=key,
        code=run.codes.get(key) if key is not None else None,
        direction=told.phase if told is not None else "forward",
        reason=reason,
        detail=phase.detail,
        ended=phase.ended,
    )


def first_lines(texts: tuple[str, ...]) -> list[str]:
    return [text.strip().split("\n", 1)[0] for text in texts]


MarkKind = Literal["break", "recompile", "eager", "failure", "cache", "cudagraphs"]

_MOST_GUARDS = 3
"""Of one recompile, in its tooltip. Chosen: the rest is counted."""


_KINDS: dict[type, MarkKind] = {
    GraphBreak: "break",
    Recompile: "recompile",
    FrameSkipped: "eager",
    CompileFailed: "failure",
    CacheAccess: "cache",
    CudagraphSkip: "cudagraphs",
}


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Something that took no time. Its words are made when they are asked for: of a hundred
    thousand a page draws a few hundred."""

    kind: MarkKind
    time_ns: int
    event: Event
    """What was recorded of it."""

    @property
    def name(self) -> str:
        return _words(self.event.body)[0]

    @property
    def detail(self) -> str:
        return _words(self.event.body)[1]


def mark_of(event: Event) -> Mark | None:
    """The event as a moment, if it is one that a reader looks for."""
    body = event.body
    kind = _KINDS.get(type(body))
    if kind is None or (isinstance(body, FrameSkipped) and body.cause == "harmless"):
        return None
    return Mark(kind, event.time_ns, event)


def _words(body: object) -> tuple[str, str]:
    """Its name, and what more is known."""
    match body:
        case GraphBreak():
            return f"graph break {body.gb_id or ''}".rstrip(), body.gb_type
        case Recompile():
            name = f"recompile blocked ({body.refused})" if body.refused else "recompile"
            return f"{name} of {body.frame.function}", failed_guards(body)
        case FrameSkipped():
            return f"{body.frame.function} runs eagerly", body.reason
        case CompileFailed():
            return f"{body.phase} failed: {body.error}", body.message.strip().split("\n")[0]
        case CacheAccess():
            cache = CACHE_NAMES.get(body.cache, body.cache)
            return f"{cache} cache {body.outcome}", body.reason
        case CudagraphSkip():
            return "CUDA graphs skipped", body.reason
    return "", ""


def failed_guards(body: Recompile) -> str:
    """What changed since the compilation that was used last; torch's words where that is all."""
    if not body.entries:
        return ""
    latest = body.entries[0]
    if not latest.failed:
        return latest.reason
    told = [
        f"{guard.subject}: expected {guard.expected or '?'}, got {guard.actual or '?'}"
        if guard.expected or guard.actual
        else guard.guard
        for guard in latest.failed[:_MOST_GUARDS]
    ]
    more = len(latest.failed) - _MOST_GUARDS
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "")
