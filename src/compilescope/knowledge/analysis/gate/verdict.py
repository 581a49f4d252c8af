"""The gate: is what a run lost within the limits, and is any of it new?

Pure: a digest, limits and a baseline in, a judgement out. What could not be told never passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from compilescope.base.project import Project
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.benchmarks import benchmark_checks
from compilescope.knowledge.analysis.gate.doubts import blind_spot, doubts
from compilescope.knowledge.analysis.gate.terms import (
    CHECKED_KINDS,
    UNTRIED,
    Count,
    counters,
    each_once,
)
from compilescope.knowledge.analysis.gate.terms import NOTHING_LOST as NOTHING_LOST
from compilescope.knowledge.analysis.gate.terms import NOTHING_WRONG as NOTHING_WRONG
from compilescope.knowledge.analysis.gate.terms import GateCheck as GateCheck
from compilescope.knowledge.analysis.gate.terms import GateLimits as GateLimits
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.body import Verdict
from compilescope.record.outcomes import JudgedLimit

C = TypeVar("C", bound=JudgedLimit)
_UNBUILT = "job/unbuilt"


def project_limits(project: Project) -> GateLimits:
    """What pyproject.toml says of programs."""
    return GateLimits(
        breaks=project.max_breaks,
        recompiles=project.max_recompiles,
        graphs=project.max_graphs,
        eager=project.max_eager,
        failures=project.max_failures,
        violations=project.max_violations,
        differences=project.max_differences,
        coverage=project.min_coverage,
    )


def complete(limits: GateLimits, *, with_baseline: bool = False) -> GateLimits:
    """What is held against a run: someone who limits anything does not want failures either."""
    if limits.given:
        return limits.over(GateLimits(failures=0))
    return limits if with_baseline else NOTHING_LOST


def complete_for_benchmarks(
    given: GateLimits, project: Project, *, with_baseline: bool = False
) -> GateLimits:
    """The same for a benchmark run. What a benchmark does not record counts only where it was
    asked for on the command line: a project's limits are for its programs too."""
    recorded = msgspec.structs.replace(
        project_limits(project), eager=None, coverage=None, slowdown=project.max_slowdown
    )
    limits = given.over(recorded)
    if limits.given:
        return limits.over(GateLimits(failures=0))
    return limits if with_baseline else NOTHING_WRONG


def complete_for_numbers(given: GateLimits, project: Project) -> GateLimits:
    """The same for a run that only compares numbers, of which all must agree."""
    return given.over(GateLimits(differences=project.max_differences or 0))


class AcceptedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that a baseline accepts."""

    kind: str
    fingerprint: str
    rule: str = ""
    title: str = ""
    file: str = ""
    """Relative to the program's folder, or to the folder of installed packages."""
    function: str = ""
    source: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says."""

    run: str
    checks: tuple[GateCheck, ...]
    new: tuple[Finding, ...] = ()
    """Not in the baseline."""
    known: tuple[Finding, ...] = ()
    """In the baseline."""
    gone: tuple[AcceptedFinding, ...] = ()
    """In the baseline and not seen any more."""

    @property
    def outcome(self) -> Verdict:
        """A definite failure outweighs what could not be told."""
        outcomes = {check.outcome for check in self.checks}
        return "fail" if "fail" in outcomes else "unknown" if "unknown" in outcomes else "pass"

    @property
    def unsure(self) -> tuple[GateCheck, ...]:
        return unsure_of(self.checks)

    @property
    def against(self) -> tuple[Finding, ...]:
        """All that counts against the run, each once."""
        return each_once(f for check in self.checks for f in check.findings)

    @property
    def acceptable(self) -> tuple[Finding, ...]:
        """What of it a baseline would accept: causes of lost compilation."""
        return tuple(f for f in self.against if f.kind not in CHECKED_KINDS)


def unsure_of(checks: Iterable[C]) -> tuple[C, ...]:
    """What could not be told: of the run as a whole, or else of single limits."""
    unknown = tuple(check for check in checks if check.outcome == "unknown")
    return tuple(check for check in unknown if check.limit is None) or unknown


def judge(
    digest: Digest,
    limits: GateLimits,
    *,
    baseline: tuple[AcceptedFinding, ...] | None = None,
    own: bool = False,
    earlier: Digest | None = None,
) -> Judgement:
    """Hold a run against limits, and against what was known before.

    With `own`, only causes in the user's own files count; graphs and coverage are of the whole run.
    Benchmarks are as slow as eager mode allows, or as those of an `earlier` run.
    """
    checks = [*_unbuilt(digest, baseline), *_limits(digest, limits, own)]
    checks += benchmark_checks(digest, limits, earlier)
    if baseline is None:
        return Judgement(run=digest.run, checks=_with_doubts(digest, checks))
    everything = findings(digest)
    found = [finding for finding in everything if finding.own or not own]
    accepted = {(known.kind, known.fingerprint) for known in baseline}
    tried = [f for f in found if f.rule_id not in UNTRIED]  # The others have checks of their own.
    new = tuple(f for f in tried if (f.kind, f.fingerprint) not in accepted)
    checks.append(_baseline_check(digest, new))
    seen = {(finding.kind, finding.fingerprint) for finding in everything}
    return Judgement(
        run=digest.run,
        checks=_with_doubts(digest, checks),
        new=new,
        known=tuple(f for f in found if (f.kind, f.fingerprint) in accepted),
        gone=tuple(known for known in baseline if (known.kind, known.fingerprint) not in seen),
    )


def _unbuilt(digest: Digest, baseline: tuple[AcceptedFinding, ...] | None) -> list[GateCheck]:
    """Of a sweep: models that could not be built say nothing, unless a baseline accepts them."""
    accepted = {known.fingerprint for known in baseline or ()}
    left = [f for f in findings(digest) if f.rule_id == _UNBUILT and f.fingerprint not in accepted]
    if not digest.jobs or not left:
        return []
    jobs = "job" if len(left) == 1 else "jobs"
    message = f"{len(left)} {jobs} could not be built or run in eager mode"
    return [GateCheck(name="unbuilt", outcome="unknown", message=message, found=len(left), limit=0)]


def _with_doubts(digest: Digest, checks: list[GateCheck]) -> tuple[GateCheck, ...]:
    """Where less may have been seen than there was, no limit is known to hold."""
    doubtful = [
        GateCheck(name=d.name, outcome="unknown", message=d.message) for d in doubts(digest)
    ]
    if doubtful:
        checks = [
            msgspec.structs.replace(check, outcome="unknown", message=f"so far {check.message}")
            if check.outcome == "pass"
            else check
            for check in checks
        ]
    return (*doubtful, *checks)


def _baseline_check(digest: Digest, new: tuple[Finding, ...]) -> GateCheck:
    if new:
        causes = "cause" if len(new) == 1 else "causes"
        message = f"{len(new)} new {causes}, not in the baseline"
        return GateCheck(
            name="baseline", outcome="fail", message=message, found=len(new), limit=0, findings=new
        )
    blind = blind_spot(digest, "baseline")
    if blind:
        return GateCheck(name="baseline", outcome="unknown", message=blind, limit=0)
    return GateCheck(name="baseline", outcome="pass", message="nothing new", found=0, limit=0)


_NOUNS = {
    "breaks": ("graph break", "graph breaks"),
    "recompiles": ("recompile", "recompiles"),
    "graphs": ("graph", "graphs"),
    "eager": ("function that fell back to eager", "functions that fell back to eager"),
    "failures": ("failed compilation", "failed compilations"),
    "violations": ("violation", "violations"),
    "differences": ("value that differs", "values that differ"),
}


def _limits(digest: Digest, limits: GateLimits, own: bool) -> list[GateCheck]:
    checks: list[GateCheck] = []
    for name, counter in counters(digest).items():
        limit = getattr(limits, name)
        if limit is not None:
            checks.append(_at_most(name, counter(digest, own), limit, digest))
    if limits.coverage is not None and not digest.benchmarks:
        checks.append(_at_least(digest, limits.coverage))
    return checks


def _at_most(name: str, counted: Count, limit: int, digest: Digest) -> GateCheck:
    found, against = counted
    hidden = name == "breaks" and digest.hidden_breaks_possible
    # A sweep's failures are jobs too, whatever made them fail.
    nouns = ("failure", "failures") if digest.jobs and name == "failures" else _NOUNS[name]
    noun = nouns[found != 1]
    needed = sum(frame.count - frame.avoidable for frame in digest.recompiles)
    if name == "recompiles" and needed:
        noun += f" besides {needed} needed"
    message = f"{'at least ' * hidden}{found} {noun}, at most {limit} allowed"
    if found > limit:
        return GateCheck(
            name=name, outcome="fail", message=message, found=found, limit=limit, findings=against
        )
    blind = blind_spot(digest, name)
    if blind:
        return GateCheck(name=name, outcome="unknown", message=blind, limit=limit)
    return GateCheck(name=name, outcome="pass", message=message, found=found, limit=limit)


def _at_least(digest: Digest, limit: float) -> GateCheck:
    coverage = digest.coverage
    if coverage is None:
        why = "coverage was not measured: the run was not timed"
        if any(region.warmup_calls for region in digest.region_costs):
            why = "coverage was not measured: no compiled call ran after warm-up"
        return GateCheck(name="coverage", outcome="unknown", message=why, limit=limit)
    # Rounded down: 94.97 is not the 95 that was asked for, and must not look like it.
    shown = math.floor(coverage * 10) / 10
    return GateCheck(
        name="coverage",
        outcome="pass" if coverage >= limit else "fail",
        message=f"{shown:.1f} % of the time inside graphs, at least {limit:g} % required",
        found=coverage,
        limit=limit,
    )
