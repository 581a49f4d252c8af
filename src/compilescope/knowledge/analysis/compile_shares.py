"""Where the compile time went: useful, recompiles by cause, tracing that graph breaks threw away.

A compilation counts once: what a break threw away within a recompile is part of that recompile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.findings.compile_ids import (
    CompileKey,
    compile_key,
    compile_keys,
    retrace_seconds,
)
from compilescope.knowledge.findings.recompiles import (
    RecompiledFrame,
    RecompileFinding,
    recompile_findings,
)
from compilescope.record.bodies import CompileFailed, CompileTime, GraphBreak, Recompile
from compilescope.record.run import Run

ShareKind = Literal["useful", "recompile", "break", "failed"]


class CompileShare(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the compile time."""

    kind: ShareKind
    label: str
    """The value whose guard failed, in its function; the kind alone says all of the others."""
    seconds: float
    because: tuple[str, ...] = ()
    """Ids of the events behind it."""


def compile_shares(run: Run, seen: Digest) -> list[CompileShare]:
    """They add up to all compile time that is known; empty where none is. The useful comes first,
    then recompiles, most expensive first, what failed, and what breaks threw away."""
    total = sum(body.duration_ns for _, body in run.of(CompileTime)) / 1e9
    if not total:
        return []
    again, failed = compile_keys(run, Recompile), compile_keys(run, CompileFailed)
    lost = [
        *_again(seen.recompiles, seen.root),
        *_share("failed", _unfinished(run, failed - again)),
        *_broken(run, seen, again | failed),
    ]
    useful = max(total - sum(share.seconds for share in lost), 0.0)
    return [CompileShare(kind="useful", label="", seconds=useful), *lost]


def _again(frames: Iterable[RecompiledFrame], root: str) -> list[CompileShare]:
    """One for each value, though several parts of its function may guard it. What the program
    needs is useful."""
    found: dict[tuple[str, str, str], list[RecompileFinding]] = {}
    for frame in frames:
        for cause in recompile_findings(frame, root):
            if not cause.needed:
                found.setdefault((frame.file, frame.function, cause.subject), []).append(cause)
    shares = [
        CompileShare(
            kind="recompile",
            label=f"{function}: {subject}" if subject else function,
            seconds=sum(cause.seconds or 0.0 for cause in members),
            because=tuple(event for cause in members for event in cause.because),
        )
        for (_, function, subject), members in found.items()
    ]
    return sorted([s for s in shares if s.seconds], key=lambda share: -share.seconds)


def _broken(run: Run, seen: Digest, elsewhere: set[CompileKey | None]) -> list[CompileShare]:
    """Functions that were given up at a break as a whole; of others, the tracing thrown away.
    `elsewhere`: compilations that are counted as something else."""
    if not run.count(GraphBreak):
        return []
    given_up = _unfinished(run, compile_keys(run, GraphBreak) - elsewhere)
    counted = elsewhere | {key for key, _, _ in given_up}
    keys = {event.id: compile_key(event, event.compile_id) for event, _ in run.of(GraphBreak)}
    known = {event_id for site in seen.sites for event_id in site.because}
    traced = [
        (keys[event_id], event_id, seconds)
        for event_id, seconds in retrace_seconds(run).items()
        if event_id in known and keys[event_id] not in counted
    ]
    return _share("break", [*given_up, *traced])


_Lost = tuple[CompileKey | None, str, float]


def _unfinished(run: Run, keys: set[CompileKey | None]) -> list[_Lost]:
    """Compilations among these that came to nothing."""
    if not keys:
        return []
    return [
        (key, event.id, body.duration_ns / 1e9)
        for event, body in run.of(CompileTime)
        if not body.ok and (key := compile_key(event, event.compile_id)) in keys
    ]


def _share(kind: ShareKind, lost: list[_Lost]) -> list[CompileShare]:
    seconds = sum(each for _, _, each in lost)
    if not seconds:
        return []
    because = tuple(event_id for _, event_id, _ in lost)
    return [CompileShare(kind=kind, label="", seconds=seconds, because=because)]
