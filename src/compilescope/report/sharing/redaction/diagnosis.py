"""What the rules say of a run, without any names: it must be equal before and after redaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.partial_digest import digest_of_first
from compilescope.knowledge.findings.remedy import Remedy
from compilescope.record.bodies import CompileFailed, FrameSkipped, GraphBreak, Recompile
from compilescope.record.run import Run
from compilescope.record.stack import origin_of
from compilescope.record.uncollected import uncollected

Diagnosis = dict[str, list[Any]]
MOST_COMPARED = 1_000
"""Graph breaks, failed guards and failures whose reasons are compared, of each the first. Chosen:
far more than the programs seen had; to explain a cause may be to parse a file."""

_MOST_CAUSES = 30_000
"""Events of causes of a run that is compared at all. Chosen: to count so many, twice, takes a few
seconds."""
_CAUSES = (GraphBreak, Recompile, CompileFailed, FrameSkipped)
Extent = Literal["whole", "part", "none"]


def compared_diagnosis(run: Run) -> tuple[Diagnosis, Extent]:
    """What a redacted run is compared by, and how much of its diagnosis that is. Of more causes
    than are compared, the reasons of the others are left out."""
    if sum(run.count(kind) for kind in _CAUSES) > _MOST_CAUSES:
        return {}, "none"
    seen, whole = digest_of_first(run, MOST_COMPARED)
    return diagnosis(seen), "whole" if whole else "part"


@uncollected()
def diagnosis(digest: Digest) -> Diagnosis:
    """Everything that must not change, by what it is about."""
    places: dict[str, int] = {}
    for number, site in enumerate(digest.sites):
        places.setdefault(site.fingerprint, number)
    return {
        "counts": [
            (name, getattr(digest, name))
            for name in (
                *("exit_status", "signal", "graphs", "regions", "graph_ops"),
                *("break_events", "events", "unread", "tool_faults", "coverage", "guards"),
                *("compile_seconds", "phases_seconds", "hidden_breaks_possible", "kernels"),
                *("stances", "unknown_events", "processes"),
            )
        ],
        "caches": [(name, c.hits, c.misses, c.bypasses) for name, c in digest.caches.items()],
        "breaks": [
            (
                *(site.gb_id, site.category, site.rule, site.outcome, site.line, site.count),
                *(site.frames, site.ranks, site.in_torch, site.lost_ms, origin_of(site.file)),
                *(len(site.tests), len(site.hints), len(site.wrappers), len(site.gave_up)),
                *(site.column is None, site.end_column is None, _kinds(site.remedy), site.because),
                places.get(site.consequence_of or ""),
            )
            for site in digest.sites
        ],
        "eager functions": [
            (f.line, f.cause, f.gb_id, f.rest_only, f.may_hide_breaks, f.count, f.because)
            for f in digest.eager_frames
        ],
        "recompiles": [
            (
                *(frame.line, frame.count, frame.resumed_at, frame.limit_hit, frame.because),
                [
                    (c.rule, c.guard_kind, c.is_placed, c.line, c.count, _kinds(c.remedy))
                    for c in frame.causes
                ],
            )
            for frame in digest.recompiles
        ],
        "failures": [
            (
                *(f.gb_id, f.phase, f.line, f.suppressed, f.count, f.category, f.because),
                _kinds(f.remedy),
            )
            for f in digest.failures
        ],
        "skips": [
            len(digest.unexplained_skips),
            sorted(digest.cudagraph_skips.values()),
            [(region.line, region.calls, region.coverage) for region in digest.region_costs],
        ],
        "findings": [
            (finding.kind, finding.level, finding.line, finding.count)
            for finding in findings(digest)
        ],
    }


def changed(before: Diagnosis, after: Diagnosis) -> list[str]:
    """What the rules see otherwise in the second; empty where they say the same."""
    return [name for name in before if before[name] != after[name]]


def _kinds(remedies: Iterable[Remedy]) -> list[str]:
    return [remedy.kind for remedy in remedies]
