"""The findings of a run in one list: each cause once.

What a gate counts, a baseline keeps, a comparison matches and a code scanner shows.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.knowledge.analysis.benchmarks import is_failure, setup_of
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding, WordedFinding
from compilescope.knowledge.findings.recompiles import (
    RecompiledFrame,
    RecompileFinding,
    recompile_findings,
)
from compilescope.knowledge.findings.remedy import Advice
from compilescope.record.benchmark import Benchmark
from compilescope.record.fingerprint import fingerprint
from compilescope.record.jobs import JobCause, JobEnded
from compilescope.record.stack import origin_of

_Key = tuple[object, ...]


def findings(digest: Digest) -> list[Finding]:
    """Failures first, then breaks, eager functions and recompiles, each ranked as in the digest."""
    if digest.jobs:
        return swept_findings(digest.jobs)
    if digest.benchmarks:
        return [benchmark_finding(row) for row in digest.benchmarks if is_failure(row)]
    found: list[Finding] = [*digest.failures, *digest.sites]
    behind = EagerCauses(digest)
    found += [_explained(frame) for frame in digest.eager_frames if not behind.is_known(frame)]
    for frame in digest.recompiles:
        found += [each for each in recompile_findings(frame, digest.root) if not each.needed]
    return distinct(found)


def swept_findings(jobs: Iterable[JobEnded]) -> list[Finding]:
    """Of a sweep: the jobs that did not end well, then every cause, each once over all jobs."""
    ended = [job_finding(job) for job in jobs if job.state != "ok" and not _is_explained(job)]
    return distinct([*ended, *(cause_finding(cause) for job in jobs for cause in job.causes)])


def _is_explained(job: JobEnded) -> bool:
    """A failed compilation ended it, which is a finding itself."""
    return job.state == "failed" and any(cause.kind == "failure" for cause in job.causes)


def job_finding(job: JobEnded) -> WordedFinding:
    return WordedFinding(
        kind="failure",
        rule_id=f"job/{job.state}",
        fingerprint=fingerprint(f"job {job.state} {job.name}", None, ""),
        title=f"{job.name}: {job.state}",
        message=job.reason,
        level="warning" if job.state in ("unbuilt", "lost", "cancelled") else "error",
        file="",
        line=0,
    )


def cause_finding(cause: JobCause) -> WordedFinding:
    shared = (
        *("kind", "fingerprint", "title", "message", "level"),
        *("file", "line", "function", "source", "count", "seconds"),
    )
    values = {name: getattr(cause, name) for name in shared}
    told = f"{cause.fix_title[:1].upper()}{cause.fix_title[1:]}."
    advice = (Advice(cause.fix, "proposed", "", told),) if cause.fix else ()
    return WordedFinding(**values, rule_id=cause.rule, first_step=cause.fix_title, advice=advice)


def benchmark_finding(row: Benchmark) -> WordedFinding:
    """A benchmark without figures, or with figures of wrong results."""
    rule = "bench/failed" if row.error else "bench/kerneldiff"
    told = "failed" if row.error else "its results differ from eager mode's"
    key = " ".join(map(str, (rule, row.backend, *setup_of(row))))
    return WordedFinding(
        kind="failure",
        rule_id=rule,
        fingerprint=fingerprint(key, None, ""),
        title=f"{row.model} on {row.backend}: {told}",
        message=row.error or "KernelDiff: `show --section diffs` has the differences.",
        level="error",
        file="",
        line=0,
    )


def eager_findings(frame: EagerFinding, behind: EagerCauses, root: str) -> list[Finding]:
    """What made one function eager: a break, recompiles, a failure; else the function itself."""
    found: list[Finding] = [*behind.sites(frame)]
    for again in behind.recompiles(frame):
        found += recompile_findings(again, root)
    found += behind.failures(frame)
    return found or [_explained(frame)]


def _explained(frame: EagerFinding) -> EagerFinding:
    from compilescope.knowledge.rules.causes.explanations import (
        explained_eager,  # Few runs need it.
    )

    return explained_eager(frame)


def distinct(found: Iterable[Finding]) -> list[Finding]:
    """The same line twice in a function, or one value guarded in two of its parts, is one cause."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        groups.setdefault((finding.kind, finding.fingerprint), []).append(finding)
    return [_joined(same) if len(same) > 1 else same[0] for same in groups.values()]


def _joined(same: list[Finding]) -> Finding:
    found = _summed(same)
    if isinstance(found, RecompileFinding):
        again = [each for each in same if isinstance(each, RecompileFinding)]
        counted = [each.calls_after for each in again if each.calls_after is not None]
        return msgspec.structs.replace(
            found,
            needed=all(each.needed for each in again),
            calls_after=min(counted, default=None),
        )
    return found


def _summed(same: list[Finding]) -> Finding:
    return msgspec.structs.replace(
        same[0],
        count=sum(each.count for each in same),
        ranks=tuple(sorted({rank for each in same for rank in each.ranks})),
        because=tuple(dict.fromkeys(name for each in same for name in each.because)),
        seconds=_sum(each.seconds for each in same),
        lost_ms=_sum(each.lost_ms for each in same),
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = [each for each in amounts if each is not None]
    return sum(known) if known else None


def by_cost(found: Iterable[Finding]) -> list[Finding]:
    """What loses most first: what ended the program; what runs eagerly in every call, what compiles
    again and again, what costs a little in every call, what was compiled once more and is reused;
    within each by the time that is known to be lost. Echoes come last."""
    return sorted(
        found,
        key=lambda each: (
            each.kind != "failure" or each.level != "error",
            each.level == "note",
            each.toll,
            -each.cost_seconds,
        ),
    )


# What made a function eager, as far as the digest tells: a break, recompiles, a failure.
#
# A function that none of them explains is a cause of its own.


class EagerCauses:
    """The causes of a digest, found by what an eager function says of itself.

    Made once for all of its functions: a run may have thousands of them, and as many causes.
    """

    def __init__(self, digest: Digest) -> None:
        self._sites: dict[_Key, dict[int, BreakFinding]] = {}
        for number, site in enumerate(digest.sites):
            for key in _gave_up(site):
                self._sites.setdefault(key, {})[number] = site
        self._recompiles: dict[_Key, list[RecompiledFrame]] = {}
        for again in digest.recompiles:
            if again.limit_hit:
                self._recompiles.setdefault((again.file, again.function), []).append(again)
        self._failures: dict[_Key, list[FailureFinding]] = {}
        for failure in digest.failures:
            if failure.suppressed:
                self._failures.setdefault((failure.file, failure.function), []).append(failure)

    def is_known(self, frame: EagerFinding) -> bool:
        """Is it eager for a reason that a break, a recompile or a failure tells already?"""
        return bool(
            any(key in self._sites for key in _break_keys(frame))
            or self.recompiles(frame)
            or self.failures(frame)
        )

    def sites(self, frame: EagerFinding) -> list[BreakFinding]:
        """In the digest's order."""
        found: dict[int, BreakFinding] = {}
        for key in _break_keys(frame):
            found |= self._sites.get(key, {})
        return [found[number] for number in sorted(found)]

    def recompiles(self, frame: EagerFinding) -> list[RecompiledFrame]:
        if frame.cause != "recompile-limit":
            return []
        return self._recompiles.get((frame.file, frame.function), [])

    def failures(self, frame: EagerFinding) -> list[FailureFinding]:
        # A backend may also decline a graph without an error; then the function is all there is.
        if frame.cause not in ("backend", "error"):
            return []
        return self._failures.get((frame.file, frame.function), [])


def _gave_up(site: BreakFinding) -> list[_Key]:
    """Where torch wrote the code, the eager function is shown as the user's call of it."""
    return [
        (site.gb_type,)
        if origin_of(code.file) == "torch"
        else (site.gb_type, code.file, code.line, code.function)
        for code in site.gave_up
    ]


def _break_keys(frame: EagerFinding) -> list[_Key]:
    if frame.cause != "graph-break":
        return []
    return [(frame.reason,), (frame.reason, frame.file, frame.line, frame.function)]
