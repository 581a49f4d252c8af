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


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that took no time."""

    kind: MarkKind
    name: str
    time_ns: int
    event: str
    """Id of the event behind it."""
    compile_id: str | None = None
    file: str = ""
    line: int = 0
    detail: str = ""


def mark_of(event: Event) -> Mark | None:
    """The event as a moment, if it is one that a reader looks for."""
    told = _told(event)
    if told is None:
        return None
    kind, name, detail = told
    site = event.site
    return Mark(
        kind=kind,
        name=name,
        time_ns=event.time_ns,
        event=event.id,
        compile_id=event.compile_id,
        file=site.file if site else "",
        line=site.line if site else 0,
        detail=detail,
    )


def _told(event: Event) -> tuple[MarkKind, str, str] | None:
    body = event.body
    if isinstance(body, GraphBreak):
        return "break", f"graph break {body.gb_id or ''}".rstrip(), body.gb_type
    if isinstance(body, Recompile):
        name = f"recompile blocked ({body.refused})" if body.refused else "recompile"
        return "recompile", f"{name} of {body.frame.function}", failed_guards(body)
    if isinstance(body, FrameSkipped):
        if body.cause == "harmless":
            return None
        return "eager", f"{body.frame.function} runs eagerly", body.reason
    if isinstance(body, CompileFailed):
        return "failure", f"{body.phase} failed: {body.error}", body.message.strip().split("\n")[0]
    if isinstance(body, CacheAccess):
        cache = CACHE_NAMES.get(body.cache, body.cache)
        return "cache", f"{cache} cache {body.outcome}", body.reason
    if isinstance(body, CudagraphSkip):
        return "cudagraphs", "CUDA graphs skipped", body.reason
    return None


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
