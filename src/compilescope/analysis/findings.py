"""The findings of a run in one list: each cause once.

What a gate counts, a baseline keeps, a comparison matches and a code scanner shows.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.analysis.benchmarks import is_failure, setup_of
from compilescope.analysis.digest import Digest
from compilescope.analysis.eager_causes import EagerCauses
from compilescope.findings.eager import EagerFinding
from compilescope.findings.finding import Finding, ToldFinding
from compilescope.findings.recompiles import recompile_findings
from compilescope.findings.remedy import Advice
from compilescope.model.benchmarked import Benchmark
from compilescope.model.fingerprint import fingerprint
from compilescope.model.jobs import JobCause, JobEnded


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
        found += recompile_findings(frame, digest.root)
    return distinct(found)


def swept_findings(jobs: Iterable[JobEnded]) -> list[Finding]:
    """Of a sweep: the jobs that did not end well, then every cause, each once over all jobs."""
    ended = [job_finding(job) for job in jobs if job.state != "ok" and not _is_explained(job)]
    return distinct([*ended, *(cause_finding(cause) for job in jobs for cause in job.causes)])


def _is_explained(job: JobEnded) -> bool:
    """A failed compilation ended it, which is a finding itself."""
    return job.state == "failed" and any(cause.kind == "failure" for cause in job.causes)


def job_finding(job: JobEnded) -> ToldFinding:
    return ToldFinding(
        kind="failure",
        rule_id=f"job/{job.state}",
        fingerprint=fingerprint(f"job {job.state} {job.name}", None, ""),
        title=f"{job.name}: {job.state}",
        message=job.reason,
        level="warning" if job.state in ("unbuilt", "lost", "cancelled") else "error",
        file="",
        line=0,
    )


def cause_finding(cause: JobCause) -> ToldFinding:
    shared = (
        *("kind", "fingerprint", "title", "message", "level"),
        *("file", "line", "function", "source", "count", "seconds"),
    )
    values = {name: getattr(cause, name) for name in shared}
    told = f"{cause.fix_title[:1].upper()}{cause.fix_title[1:]}."
    advice = (Advice(cause.fix, "proposed", "", told),) if cause.fix else ()
    return ToldFinding(**values, rule_id=cause.rule, first_step=cause.fix_title, advice=advice)


def benchmark_finding(row: Benchmark) -> ToldFinding:
    """A benchmark without figures, or with figures of wrong results."""
    rule = "bench/failed" if row.error else "bench/kerneldiff"
    told = "failed" if row.error else "its results differ from eager mode's"
    key = " ".join(map(str, (rule, row.backend, *setup_of(row))))
    return ToldFinding(
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
    from compilescope.rules.causes.explanations import explained_eager  # Few runs need it.

    return explained_eager(frame)


def distinct(found: Iterable[Finding]) -> list[Finding]:
    """The same line twice in a function, or one value guarded in two of its parts, is one cause."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        groups.setdefault((finding.kind, finding.fingerprint), []).append(finding)
    return [_joined(same) if len(same) > 1 else same[0] for same in groups.values()]


def _joined(same: list[Finding]) -> Finding:
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
    """Dearest first: what ended the program, then by the time that is known to be lost; what is
    not timed keeps its order, echoes come last."""
    return sorted(
        found,
        key=lambda each: (
            each.kind != "failure" or each.level != "error",
            each.level == "note",
            -each.cost_seconds,
        ),
    )
