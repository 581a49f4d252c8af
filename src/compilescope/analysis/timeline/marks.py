"""Moments of a compilation: breaks, recompiles, failures, and what the caches answered."""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.analysis.cache_lookups import CACHE_NAMES
from compilescope.model.bodies import (
    CacheAccess,
    CompileFailed,
    CudagraphSkip,
    FrameSkipped,
    GraphBreak,
    Recompile,
)
from compilescope.model.event import Event

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
