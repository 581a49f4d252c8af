"""Findings: every distinct cause in one list, each with a fingerprint that outlives edits.

What a gate counts, a baseline keeps, a comparison matches and a code scanner shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from compilescope.model.benchmarked import Benchmark
from compilescope.model.fingerprint import fingerprint
from compilescope.model.jobs import JobCause, JobEnded
from compilescope.model.stack import Frame, origin_of
from compilescope.registry.taxonomy import load_taxonomy
from compilescope.rules.behind import (
    failures_behind,
    recompiles_behind,
    sites_behind,
    told_elsewhere,
)
from compilescope.rules.benchmarks import is_failure, setup_of
from compilescope.rules.causes.advice import Advice
from compilescope.rules.causes.remedy import Remedy
from compilescope.rules.digest import Digest
from compilescope.rules.eager import EagerFrame
from compilescope.rules.failures import Failure
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame
from compilescope.rules.sites import Site

FindingKind = Literal["break", "recompile", "eager", "failure"]
Level = Literal["error", "warning", "note"]

# What differs from run to run in Dynamo's names: addresses, ids, counters, lines to resume at.
_PASSING = re.compile(r"0x[0-9a-fA-F]+|\b\d{9,}\b|(?<=___)\d+|(?<=__resume_at_)\d+_\d+")


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
    """What to try first, in words; empty where nothing is known."""
    level: Level
    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    """On `end_line`."""
    end_line: int | None = None
    """The line that the expression ends on."""
    function: str = ""
    source: str = ""
    count: int = 1
    """How often it was seen."""
    ranks: tuple[int, ...] = ()
    because: tuple[str, ...] = ()
    """Ids of the events behind it."""
    advice: tuple[Advice, ...] = ()
    """What to do, best first; empty until the fixes were asked."""
    seconds: float | None = None
    """Compile time that it cost, where that is known."""
    lost_ms: float | None = None
    """Time outside compiled graphs because of it, in a timed run."""

    @property
    def cost_seconds(self) -> float:
        """All that is known of what it cost."""
        return (self.seconds or 0.0) + (self.lost_ms or 0.0) / 1e3

    @property
    def own(self) -> bool:
        """In the user's own files, not in an installed package."""
        return is_own(self.file)


def is_own(file: str) -> bool:
    """Is a cause at this place the user's? A place that is not known may well be.

    Code without a file (`-c`, a prompt) is named only where no file of anybody's is on the stack.
    """
    return origin_of(file) in ("user", "generated")


def findings(digest: Digest) -> list[Finding]:
    """Failures first, then breaks, eager functions and recompiles, each ranked as in the digest."""
    if digest.jobs:
        return swept_findings(digest.jobs)
    if digest.benchmarks:
        return [benchmark_finding(row) for row in digest.benchmarks if is_failure(row)]
    found = [failure_finding(failure, digest.root) for failure in digest.failures]
    found += [site_finding(site) for site in digest.sites]
    found += [
        _eager(frame, digest.root)
        for frame in digest.eager_frames
        if not told_elsewhere(frame, digest)
    ]
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


def job_finding(job: JobEnded) -> Finding:
    return Finding(
        kind="failure",
        rule=f"job/{job.state}",
        fingerprint=fingerprint(f"job {job.state} {job.name}", None, ""),
        title=f"{job.name}: {job.state}",
        message=job.reason,
        remedy="",
        level="warning" if job.state in ("unbuilt", "lost", "cancelled") else "error",
        file="",
        line=0,
    )


def cause_finding(cause: JobCause) -> Finding:
    shared = (
        *("kind", "rule", "fingerprint", "title", "message", "level"),
        *("file", "line", "function", "source", "count", "seconds"),
    )
    values = {name: getattr(cause, name) for name in shared}
    told = f"{cause.fix_title[:1].upper()}{cause.fix_title[1:]}."
    advice = (Advice(cause.fix, "proposed", "", told),) if cause.fix else ()
    return Finding(**values, remedy=cause.fix_title, advice=advice)


def benchmark_finding(row: Benchmark) -> Finding:
    """A benchmark without figures, or with figures of wrong results."""
    rule = "bench/failed" if row.error else "bench/kerneldiff"
    told = "failed" if row.error else "its results differ from eager mode's"
    key = " ".join(map(str, (rule, row.backend, *setup_of(row))))
    return Finding(
        kind="failure",
        rule=rule,
        fingerprint=fingerprint(key, None, ""),
        title=f"{row.model} on {row.backend}: {told}",
        message=row.error or "KernelDiff: `show --section diffs` has the differences.",
        remedy="",
        level="error",
        file="",
        line=0,
    )


def eager_findings(frame: EagerFrame, digest: Digest) -> list[Finding]:
    """What made one function eager: a break, recompiles, a failure; else the function itself."""
    found = [site_finding(site) for site in sites_behind(frame, digest)]
    for again in recompiles_behind(frame, digest):
        found += recompile_findings(again, digest.root)
    found += [failure_finding(failure, digest.root) for failure in failures_behind(frame, digest)]
    return found or [_eager(frame, digest.root)]


def recompile_findings(frame: RecompiledFrame, root: str) -> list[Finding]:
    """The guards that made one function compile again."""
    return [_recompile(cause, frame, root) for cause in _causes(frame)]


def distinct(found: Iterable[Finding]) -> list[Finding]:
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
                seconds=_sum(before.seconds, finding.seconds),
                lost_ms=_sum(before.lost_ms, finding.lost_ms),
            )
        merged[key] = finding
    return list(merged.values())


def _sum(one: float | None, other: float | None) -> float | None:
    known = [each for each in (one, other) if each is not None]
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


def site_finding(site: Site) -> Finding:
    return Finding(
        kind="break",
        rule=site.gb_id or "unregistered-break",
        fingerprint=site.fingerprint,
        title=site.gb_type,
        message=site.why or site.explanation,
        remedy=_first(site.advice, site.remedy),
        level="note" if site.consequence_of else "warning",
        file=site.file,
        line=site.line,
        column=site.column,
        end_column=site.end_column,
        end_line=site.end_line,
        function=site.function,
        source=site.source,
        count=site.events,
        ranks=site.ranks,
        because=site.because,
        advice=site.advice,
        seconds=site.retrace_seconds,
        lost_ms=site.lost_ms,
    )


def failure_finding(failure: Failure, root: str) -> Finding:
    frame = Frame(failure.file, failure.line, failure.function, source=failure.source)
    inner = _inner_error(failure)
    name = failure.gb_type or failure.error
    key = f"failure {failure.phase} {name} {inner.split(':')[0]}".rstrip()
    why = failure.why or failure.message.strip()
    return Finding(
        kind="failure",
        rule=failure.gb_id or f"failure/{failure.error}",
        fingerprint=fingerprint(key, frame, root),
        title=f"{failure.phase} compilation failed: {name}",
        message=why if (failure.cause or inner) in why else f"{why.rstrip(': ')}: {inner}",
        remedy=_first(failure.advice, failure.remedy),
        level="error",
        file=failure.file,
        line=failure.line,
        column=failure.column,
        end_column=failure.end_column,
        end_line=failure.end_line,
        function=failure.function,
        source=failure.source,
        count=failure.count,
        ranks=failure.ranks,
        because=failure.because,
        advice=failure.advice,
    )


def _inner_error(failure: Failure) -> str:
    """`RuntimeError: no such op`, of a backend's error that Dynamo wraps in one of its own."""
    lines = [line.strip() for line in failure.message.strip().splitlines() if line.strip()]
    if failure.gb_type is None and len(lines) > 1 and lines[0].endswith(" raised:"):
        return lines[1]
    return ""


def _eager(frame: EagerFrame, root: str) -> Finding:
    place = Frame(frame.file, frame.line, frame.function)
    category = load_taxonomy().category_of(frame.gb_id, frame.reason)
    return Finding(
        kind="eager",
        rule=f"eager/{frame.cause}",
        fingerprint=fingerprint(f"eager {frame.cause}", place, root),
        title=f"{frame.function} runs eagerly",
        message=frame.reason,
        remedy=category.fix if category is not None else "",
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
        count=max(frame.count, int(frame.limit_hit)),
    )
    return (unknown,)


def _recompile(cause: RecompileCause, frame: RecompiledFrame, root: str) -> Finding:
    file, line = cause.file or frame.file, cause.line or frame.line
    # The value names the cause: which of its function's lines looks at it is no part of that.
    place = Frame(file, line, frame.function)
    subject = _PASSING.sub("N", cause.subject)
    return Finding(
        kind="recompile",
        rule=f"recompile/{cause.rule or cause.kind or 'unknown'}",
        fingerprint=fingerprint(f"recompile {cause.kind} {subject}", place, root),
        # No values here: the next run has others, and the cause is the same.
        title=f"{frame.function} recompiles" + (f": {cause.subject}" if cause.subject else ""),
        message=cause.why or _change(cause, frame),
        remedy=_first(cause.advice, cause.remedy),
        level="error" if frame.limit_hit else "warning",
        file=file,
        line=line,
        function=frame.function,
        source=cause.source,
        count=cause.count,
        ranks=frame.ranks,
        because=frame.because,
        advice=cause.advice,
        seconds=cause.seconds,
    )


def _change(cause: RecompileCause, frame: RecompiledFrame) -> str:
    if not cause.guard:
        return f"{frame.function} was compiled more than once; torch reported no failed guard."
    if not (cause.expected or cause.actual):
        return f"The guard {cause.guard} failed."
    expected, actual = cause.expected or "?", cause.actual or "?"
    return f"The guard {cause.guard} failed: expected {expected}, got {actual}."


def _first(advice: tuple[Advice, ...], remedies: tuple[Remedy, ...]) -> str:
    told: tuple[Advice | Remedy, ...] = advice or remedies
    return told[0].text if told else ""
