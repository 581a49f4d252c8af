"""What a gate counts in a run, and which findings make up each number.

A number is what every view shows; several sites or functions may come to one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compilescope.rules.digest import Digest
from compilescope.rules.findings import (
    Finding,
    eager_findings,
    findings,
    is_own,
    recompile_findings,
)

Count = tuple[int, tuple[Finding, ...]]


def each_once(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Without those that stand in several lists."""
    return tuple({(f.kind, f.fingerprint): f for f in found}.values())


def _breaks(digest: Digest, own: bool) -> Count:
    number = sum(not own or is_own(site.file) for site in digest.sites)
    return number, _of_kind("break", digest, own)


def _recompiles(digest: Digest, own: bool) -> Count:
    number = 0
    for frame in digest.recompiles:
        # A recompile that the limit refused left no other trace where it was the first.
        whole = max(frame.count, int(frame.limit_hit))
        if own:
            mine = [f for f in recompile_findings(frame, digest.root) if f.own]
            whole = min(whole, sum(cause.count for cause in mine))
        number += whole
    return number, _of_kind("recompile", digest, own)


def _graphs(digest: Digest, own: bool) -> Count:
    return digest.graphs, ()


def _eager(digest: Digest, own: bool) -> Count:
    number, against = 0, []
    for frame in digest.eager_frames:
        causes = [f for f in eager_findings(frame, digest) if f.own or not own]
        number += bool(causes)
        against += causes
    return number, each_once(against)


def _failures(digest: Digest, own: bool) -> Count:
    failed = _of_kind("failure", digest, own)
    return len(failed), failed


def _of_kind(kind: str, digest: Digest, own: bool) -> tuple[Finding, ...]:
    return tuple(f for f in findings(digest) if f.kind == kind and (f.own or not own))


COUNTERS: dict[str, Callable[[Digest, bool], Count]] = {
    "breaks": _breaks,
    "recompiles": _recompiles,
    "graphs": _graphs,
    "eager": _eager,
    "failures": _failures,
}
"""By the name of the limit."""
