"""The gate: is what a run lost within the limits, and is any of it new?

Pure: a digest, limits and a baseline in, a judgement out. What could not be told never passes.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from compilescope.project import Project
from compilescope.rules.digest import Digest
from compilescope.rules.findings import Finding, findings
from compilescope.rules.gate.counts import COUNTERS, Count, each_once
from compilescope.rules.gate.doubts import blind_spot, doubts

Outcome = Literal["pass", "fail", "unknown"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be lost. None: not looked at."""

    breaks: int | None = None
    """Graph break sites."""
    recompiles: int | None = None
    """Compilations of a function after its first, over all functions and processes."""
    graphs: int | None = None
    """Over all processes."""
    eager: int | None = None
    """Functions that run eagerly, as a whole or from a break on."""
    failures: int | None = None
    """Compilations that raised, whether or not the program went on."""
    coverage: float | None = None
    """At least so much of the time inside compiled graphs, in percent."""

    @property
    def given(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def over(self, other: Limits) -> Limits:
        """These, and those of `other` where these say nothing."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return msgspec.structs.replace(
            other, **{name: value for name, value in values.items() if value is not None}
        )


NOTHING_LOST = Limits(breaks=0, recompiles=0, eager=0, failures=0)
"""The limits of someone who gave none."""


def project_limits(project: Project) -> Limits:
    """What pyproject.toml says."""
    return Limits(
        breaks=project.max_breaks,
        recompiles=project.max_recompiles,
        graphs=project.max_graphs,
        eager=project.max_eager,
        failures=project.max_failures,
        coverage=project.min_coverage,
    )


def complete(limits: Limits, *, with_baseline: bool = False) -> Limits:
    """What is held against a run: someone who limits anything does not want failures either."""
    if limits.given:
        return limits.over(Limits(failures=0))
    return limits if with_baseline else NOTHING_LOST


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that a baseline accepts."""

    kind: str
    fingerprint: str
    rule: str = ""
    title: str = ""
    file: str = ""
    """Relative to the program's folder, or to the folder of installed packages."""
    function: str = ""
    source: str = ""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One limit, held against the run."""

    name: str
    outcome: Outcome
    message: str
    found: float | None = None
    limit: float | None = None
    findings: tuple[Finding, ...] = ()
    """What counts against it."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says."""

    run: str
    checks: tuple[Check, ...]
    new: tuple[Finding, ...] = ()
    """Not in the baseline."""
    known: tuple[Finding, ...] = ()
    """In the baseline."""
    gone: tuple[Known, ...] = ()
    """In the baseline and not seen any more."""

    @property
    def outcome(self) -> Outcome:
        """A definite failure outweighs what could not be told."""
        outcomes = {check.outcome for check in self.checks}
        return "fail" if "fail" in outcomes else "unknown" if "unknown" in outcomes else "pass"

    @property
    def unsure(self) -> tuple[Check, ...]:
        """What could not be told: of the run as a whole, or else of single limits."""
        unknown = tuple(check for check in self.checks if check.outcome == "unknown")
        return tuple(check for check in unknown if check.limit is None) or unknown

    @property
    def against(self) -> tuple[Finding, ...]:
        """All that counts against the run, each once."""
        return each_once(f for check in self.checks for f in check.findings)


def judge(
    digest: Digest,
    limits: Limits,
    *,
    baseline: tuple[Known, ...] | None = None,
    own: bool = False,
) -> Judgement:
    """Hold a run against limits, and against what was known before.

    With `own`, only causes in the user's own files count; graphs and coverage are of the whole run.
    """
    checks = _limits(digest, limits, own)
    if baseline is None:
        return Judgement(run=digest.run, checks=_with_doubts(digest, checks))
    everything = findings(digest)
    found = [finding for finding in everything if finding.own or not own]
    accepted = {(known.kind, known.fingerprint) for known in baseline}
    new = tuple(f for f in found if (f.kind, f.fingerprint) not in accepted)
    checks.append(_baseline_check(digest, new))
    seen = {(finding.kind, finding.fingerprint) for finding in everything}
    return Judgement(
        run=digest.run,
        checks=_with_doubts(digest, checks),
        new=new,
        known=tuple(f for f in found if (f.kind, f.fingerprint) in accepted),
        gone=tuple(known for known in baseline if (known.kind, known.fingerprint) not in seen),
    )


def _with_doubts(digest: Digest, checks: list[Check]) -> tuple[Check, ...]:
    """Where less may have been seen than there was, no limit is known to hold."""
    doubtful = [Check(name=d.name, outcome="unknown", message=d.message) for d in doubts(digest)]
    if doubtful:
        checks = [
            msgspec.structs.replace(check, outcome="unknown", message=f"so far {check.message}")
            if check.outcome == "pass"
            else check
            for check in checks
        ]
    return (*doubtful, *checks)


def _baseline_check(digest: Digest, new: tuple[Finding, ...]) -> Check:
    if new:
        causes = "cause" if len(new) == 1 else "causes"
        message = f"{len(new)} new {causes}, not in the baseline"
        return Check(
            name="baseline", outcome="fail", message=message, found=len(new), limit=0, findings=new
        )
    blind = blind_spot(digest, "baseline")
    if blind:
        return Check(name="baseline", outcome="unknown", message=blind, limit=0)
    return Check(name="baseline", outcome="pass", message="nothing new", found=0, limit=0)


_NOUNS = {
    "breaks": ("graph break", "graph breaks"),
    "recompiles": ("recompile", "recompiles"),
    "graphs": ("graph", "graphs"),
    "eager": ("function that fell back to eager", "functions that fell back to eager"),
    "failures": ("failed compilation", "failed compilations"),
}


def _limits(digest: Digest, limits: Limits, own: bool) -> list[Check]:
    checks = []
    for name, counter in COUNTERS.items():
        limit = getattr(limits, name)
        if limit is not None:
            checks.append(_at_most(name, counter(digest, own), limit, digest))
    if limits.coverage is not None:
        checks.append(_at_least(digest, limits.coverage))
    return checks


def _at_most(name: str, counted: Count, limit: int, digest: Digest) -> Check:
    found, against = counted
    hidden = name == "breaks" and digest.hidden_breaks_possible
    noun = _NOUNS[name][found != 1]
    message = f"{'at least ' * hidden}{found} {noun}, at most {limit} allowed"
    if found > limit:
        return Check(
            name=name, outcome="fail", message=message, found=found, limit=limit, findings=against
        )
    blind = blind_spot(digest, name)
    if blind:
        return Check(name=name, outcome="unknown", message=blind, limit=limit)
    return Check(name=name, outcome="pass", message=message, found=found, limit=limit)


def _at_least(digest: Digest, limit: float) -> Check:
    coverage = digest.coverage
    if coverage is None:
        why = "coverage was not measured: the run was not timed"
        if any(region.warmup_calls for region in digest.region_costs):
            why = "coverage was not measured: no compiled call ran after warm-up"
        return Check(name="coverage", outcome="unknown", message=why, limit=limit)
    # Rounded down: 94.97 is not the 95 that was asked for, and must not look like it.
    shown = math.floor(coverage * 10) / 10
    return Check(
        name="coverage",
        outcome="pass" if coverage >= limit else "fail",
        message=f"{shown:.1f} % of the time inside graphs, at least {limit:g} % required",
        found=coverage,
        limit=limit,
    )
