"""Findings: every distinct cause in one list, each with a fingerprint that outlives edits.

What a gate counts, a baseline keeps, a comparison matches and a code scanner shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from compilescope.model.fingerprint import fingerprint
from compilescope.model.stack import Frame, origin_of
from compilescope.rules.digest import Digest
from compilescope.rules.eager import EagerFrame
from compilescope.rules.failures import Failure
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame
from compilescope.rules.remedy import Remedy
from compilescope.rules.sites import Site

FindingKind = Literal["break", "recompile", "eager", "failure"]
Level = Literal["error", "warning", "note"]

# Eager for a reason that a break, a recompile or a failure tells already.
_TOLD_ELSEWHERE = frozenset({"graph-break", "recompile-limit", "backend", "error"})


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of lost compilation."""

    kind: FindingKind
    rule: str
    """What it is, for machines: `GB0170`, `recompile/size-change`, `failure/RuntimeError`."""
    fingerprint: str
    title: str
    """What it is, in a few words."""
    message: str
    """Why it is so."""
    remedy: str
    """What to try first; empty where nothing is known."""
    level: Level
    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    function: str = ""
    source: str = ""
    count: int = 1
    """How often it was seen."""
    ranks: tuple[int, ...] = ()
    because: tuple[str, ...] = ()
    """Ids of the events behind it."""

    @property
    def own(self) -> bool:
        """In the user's own files, not in an installed package."""
        return origin_of(self.file) == "user"


def findings(digest: Digest) -> list[Finding]:
    """Failures first, then breaks, eager functions and recompiles, each ranked as in the digest."""
    found = [_failure(failure, digest.root) for failure in digest.failures]
    found += [_site(site) for site in digest.sites]
    found += [
        _eager(frame, digest.root)
        for frame in digest.eager_frames
        if frame.cause not in _TOLD_ELSEWHERE
    ]
    for frame in digest.recompiles:
        found += [_recompile(cause, frame, digest.root) for cause in _causes(frame)]
    return _distinct(found)


def _distinct(found: Iterable[Finding]) -> list[Finding]:
    """The same line twice in a function, or one value guarded in two of its parts, is one cause."""
    merged: dict[tuple[str, str], Finding] = {}
    for finding in found:
        key = (finding.kind, finding.fingerprint)
        before = merged.get(key)
        if before is not None:
            finding = msgspec.structs.replace(
                before,
                count=before.count + finding.count,
                ranks=tuple(sorted({*before.ranks, *finding.ranks})),
                because=tuple(dict.fromkeys((*before.because, *finding.because))),
            )
        merged[key] = finding
    return list(merged.values())


def _site(site: Site) -> Finding:
    return Finding(
        kind="break",
        rule=site.gb_id or "unregistered-break",
        fingerprint=site.fingerprint,
        title=site.gb_type,
        message=site.why or site.explanation,
        remedy=_first(site.remedy) or (site.hints[0] if site.hints else ""),
        level="note" if site.consequence_of else "warning",
        file=site.file,
        line=site.line,
        column=site.column,
        end_column=site.end_column,
        function=site.function,
        source=site.source,
        count=site.events,
        ranks=site.ranks,
        because=site.because,
    )


def _failure(failure: Failure, root: str) -> Finding:
    frame = Frame(failure.file, failure.line, failure.function, source=failure.source)
    key = f"failure {failure.phase} {failure.gb_type or failure.error}"
    return Finding(
        kind="failure",
        rule=failure.gb_id or f"failure/{failure.error}",
        fingerprint=fingerprint(key, frame, root),
        title=f"{failure.phase} compilation failed: {failure.gb_type or failure.error}",
        message=failure.why or failure.message,
        remedy=_first(failure.remedy),
        level="error",
        file=failure.file,
        line=failure.line,
        column=failure.column,
        end_column=failure.end_column,
        function=failure.function,
        source=failure.source,
        count=failure.count,
        ranks=failure.ranks,
        because=failure.because,
    )


def _eager(frame: EagerFrame, root: str) -> Finding:
    place = Frame(frame.file, frame.line, frame.function)
    return Finding(
        kind="eager",
        rule=f"eager/{frame.cause}",
        fingerprint=fingerprint(f"eager {frame.cause}", place, root),
        title=f"{frame.function} runs eagerly",
        message=frame.reason,
        remedy="",
        level="warning",
        file=frame.file,
        line=frame.line,
        function=frame.function,
        count=frame.events,
        ranks=frame.ranks,
        because=frame.because,
    )


def _causes(frame: RecompiledFrame) -> tuple[RecompileCause, ...]:
    """The guards that failed; where torch named none, the function alone is known."""
    if frame.causes:
        return frame.causes
    unknown = RecompileCause(
        guard="",
        subject="",
        expected="",
        actual="",
        kind="",
        file=None,
        line=None,
        source="",
        count=frame.count,
    )
    return (unknown,)


def _recompile(cause: RecompileCause, frame: RecompiledFrame, root: str) -> Finding:
    file, line = cause.file or frame.file, cause.line or frame.line
    place = Frame(file, line, frame.function, source=cause.source)
    change = f"expected {cause.expected or '?'}, got {cause.actual or '?'}"
    subject = cause.subject or "an unknown guard"
    return Finding(
        kind="recompile",
        rule=f"recompile/{cause.rule or cause.kind or 'unknown'}",
        fingerprint=fingerprint(f"recompile {cause.kind} {cause.subject}", place, root),
        title=f"{frame.function} recompiles: {subject} {change}"
        if cause.subject
        else f"{frame.function} recompiles",
        message=cause.why or cause.guard or f"{frame.function} was compiled more than once.",
        remedy=_first(cause.remedy),
        level="error" if frame.limit_hit else "warning",
        file=file,
        line=line,
        function=frame.function,
        source=cause.source,
        count=cause.count,
        ranks=frame.ranks,
        because=frame.because,
    )


def _first(remedies: tuple[Remedy, ...]) -> str:
    return remedies[0].text if remedies else ""
