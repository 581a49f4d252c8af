"""Findings: every distinct cause in one list, each with a fingerprint that outlives edits.

What a gate counts, a baseline keeps, a comparison matches and a code scanner shows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Literal

import msgspec

from compilescope.analysis.benchmarks import is_failure, setup_of
from compilescope.analysis.digest import Digest
from compilescope.analysis.eager_causes import Behind
from compilescope.findings.advice import Advice, something_to_do
from compilescope.findings.breaks import Site
from compilescope.findings.eager import EagerFrame
from compilescope.findings.failures import Failure
from compilescope.findings.recompiles import RecompileCause, RecompiledFrame
from compilescope.findings.remedy import Remedy
from compilescope.model.benchmarked import Benchmark
from compilescope.model.fingerprint import fingerprint
from compilescope.model.jobs import JobCause, JobEnded
from compilescope.model.stack import Frame, origin_of
from compilescope.patterns import late
from compilescope.registry.taxonomy import load_taxonomy
from compilescope.rules.causes.device_words import DEVICE_RULES

FindingKind = Literal["break", "recompile", "eager", "failure"]
Level = Literal["error", "warning", "note"]

# What differs from run to run in Dynamo's names: addresses, ids, counters, lines to resume at.
_PASSING = late(r"0x[0-9a-fA-F]+|\b\d{9,}\b|(?<=___)\d+|(?<=__resume_at_)\d+_\d+")


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
    behind = Behind(digest)
    found += [
        _eager(frame, digest.root) for frame in digest.eager_frames if not behind.is_known(frame)
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


def eager_findings(frame: EagerFrame, behind: Behind, root: str) -> list[Finding]:
    """What made one function eager: a break, recompiles, a failure; else the function itself."""
    found = [site_finding(site) for site in behind.sites(frame)]
    for again in behind.recompiles(frame):
        found += recompile_findings(again, root)
    found += [failure_finding(failure, root) for failure in behind.failures(frame)]
    return found or [_eager(frame, root)]


def recompile_findings(frame: RecompiledFrame, root: str) -> list[Finding]:
    """The guards that made one function compile again."""
    return [_recompile(cause, frame, root) for cause in _causes(frame)]


def recompile_fingerprints(frame: RecompiledFrame, root: str) -> list[str]:
    """Those of `recompile_findings`, which has much more to make."""
    return [_recompile_fingerprint(cause, frame, root) for cause in _causes(frame)]


def _recompile_fingerprint(cause: RecompileCause, frame: RecompiledFrame, root: str) -> str:
    file = cause.file or frame.file
    return _value_fingerprint(cause.kind, cause.subject, file, frame.function, root)


@functools.lru_cache(1 << 15)
def _value_fingerprint(kind: str, subject: str, file: str, function: str, root: str) -> str:
    """The value names the cause: which of its function's lines looks at it is no part of that."""
    subject = _PASSING.sub("N", subject)
    return fingerprint(f"recompile {kind} {subject}", Frame(file, 0, function), root)


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


def site_finding(site: Site) -> Finding:
    return Finding(
        kind="break",
        rule=site.gb_id or (site.rule if site.rule in DEVICE_RULES else "unregistered-break"),
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


def failure_fingerprint(failure: Failure, root: str) -> str:
    """That of `failure_finding`."""
    return _failure_fingerprint(failure, _inner_error(failure), root)


def _failure_fingerprint(failure: Failure, inner: str, root: str) -> str:
    frame = Frame(failure.file, failure.line, failure.function, source=failure.source)
    name = failure.gb_type or failure.error
    key = f"failure {failure.phase} {name} {inner.split(':')[0]}".rstrip()
    return fingerprint(key, frame, root)


def failure_finding(failure: Failure, root: str) -> Finding:
    inner = _inner_error(failure)
    name = failure.gb_type or failure.error
    why = failure.why or failure.message.strip()
    return Finding(
        kind="failure",
        rule=failure.gb_id or f"failure/{failure.error}",
        fingerprint=_failure_fingerprint(failure, inner, root),
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
    return Finding(
        kind="recompile",
        rule=f"recompile/{cause.rule or cause.kind or 'unknown'}",
        fingerprint=_recompile_fingerprint(cause, frame, root),
        # No values here: the next run has others, and the cause is the same.
        title=f"{frame.function} recompiles" + (f": {cause.subject}" if cause.subject else ""),
        message=cause.why or _change(cause, frame),
        remedy=_first(cause.advice, cause.remedy),
        level="error" if frame.limit_hit else "warning",
        file=cause.file or frame.file,
        line=cause.line or frame.line,
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
    told = something_to_do(advice) or next(iter(remedies), None)
    return told.text if told else ""
