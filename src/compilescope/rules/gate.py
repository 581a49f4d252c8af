"""The gate: is what a run lost within the limits, and is any of it new?

Pure: a digest, limits and a baseline in, a judgement out. What could not be told never passes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.model.stack import origin_of
from compilescope.rules.digest import Digest
from compilescope.rules.findings import Finding, findings
from compilescope.rules.recompiles import RecompiledFrame

Outcome = Literal["pass", "fail", "unknown"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be lost. None: not looked at."""

    breaks: int | None = None
    """Graph break sites."""
    recompiles: int | None = None
    """Compilations of a function after its first."""
    graphs: int | None = None
    eager: int | None = None
    """Functions that run eagerly, as a whole or from a break on."""
    failures: int | None = None
    coverage: float | None = None
    """At least so much of the time inside compiled graphs, in percent."""

    @property
    def given(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__struct_fields__)


NOTHING_LOST = Limits(breaks=0, recompiles=0, eager=0, failures=0)
"""The limits of someone who gave none."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that a baseline accepts."""

    kind: str
    fingerprint: str
    rule: str = ""
    title: str = ""
    file: str = ""
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
        outcomes = {check.outcome for check in self.checks}
        return "fail" if "fail" in outcomes else "unknown" if "unknown" in outcomes else "pass"


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
    found = [finding for finding in findings(digest) if finding.own or not own]
    checks = [*_health(digest), *_limits(digest, limits, found, own)]
    if baseline is None:
        return Judgement(run=digest.run, checks=tuple(checks))
    accepted = {(known.kind, known.fingerprint) for known in baseline}
    new = tuple(f for f in found if (f.kind, f.fingerprint) not in accepted)
    checks.append(_baseline_check(new))
    seen = {(finding.kind, finding.fingerprint) for finding in findings(digest)}
    return Judgement(
        run=digest.run,
        checks=tuple(checks),
        new=new,
        known=tuple(f for f in found if (f.kind, f.fingerprint) in accepted),
        gone=tuple(known for known in baseline if (known.kind, known.fingerprint) not in seen),
    )


def _baseline_check(new: tuple[Finding, ...]) -> Check:
    what = "nothing new" if not new else f"{len(new)} not in the baseline"
    outcome: Outcome = "fail" if new else "pass"
    return Check(
        name="baseline", outcome=outcome, message=what, found=len(new), limit=0, findings=new
    )


def _health(digest: Digest) -> list[Check]:
    """What makes the count itself doubtful."""
    doubts = []
    if digest.torch is None:
        doubts.append("no process of the program imported torch")
    elif not (digest.graphs or digest.sites or digest.eager_frames or digest.failures):
        doubts.append("nothing was compiled")
    if digest.live:
        doubts.append("the run goes on")
    if digest.cut_short:
        doubts.append(f"the record is cut short: {digest.cut_short_reason}")
    if digest.tool_faults:
        doubts.append(f"compilescope itself failed {digest.tool_faults} times in the program")
    return [Check(name="record", outcome="unknown", message=doubt) for doubt in doubts]


def _limits(digest: Digest, limits: Limits, found: list[Finding], own: bool) -> list[Check]:
    frames = [frame for frame in digest.recompiles if not own or _own_recompile(frame)]
    eager = [f for f in digest.eager_frames if not own or origin_of(f.file) == "user"]
    of = {kind: tuple(f for f in found if f.kind == kind) for kind in _KINDS}
    sites = [site for site in digest.sites if not own or origin_of(site.file) == "user"]
    counts = (
        ("breaks", len(sites), limits.breaks, of["break"]),
        ("recompiles", sum(f.count for f in frames), limits.recompiles, of["recompile"]),
        ("graphs", digest.graphs, limits.graphs, ()),
        ("eager", len(eager), limits.eager, of["eager"]),
        ("failures", len(of["failure"]), limits.failures, of["failure"]),
    )
    checks = [
        _at_most(name, number, limit, against)
        for name, number, limit, against in counts
        if limit is not None
    ]
    if limits.coverage is not None:
        checks.append(_at_least(digest.coverage, limits.coverage))
    return checks


_KINDS = ("break", "recompile", "eager", "failure")


def _own_recompile(frame: RecompiledFrame) -> bool:
    files = [frame.file, *(cause.file for cause in frame.causes if cause.file)]
    return any(origin_of(file) == "user" for file in files)


def _at_most(name: str, found: int, limit: int, against: tuple[Finding, ...]) -> Check:
    return Check(
        name=name,
        outcome="fail" if found > limit else "pass",
        message=f"{found} {name}, at most {limit} allowed",
        found=found,
        limit=limit,
        findings=against if found > limit else (),
    )


def _at_least(coverage: float | None, limit: float) -> Check:
    if coverage is None:
        return Check(
            name="coverage",
            outcome="unknown",
            message="coverage was not measured: record the run with --time",
            limit=limit,
        )
    return Check(
        name="coverage",
        outcome="pass" if coverage >= limit else "fail",
        message=f"{coverage:.1f} % of the time inside graphs, at least {limit:g} % wanted",
        found=coverage,
        limit=limit,
    )
