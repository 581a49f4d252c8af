"""The terms of the gate: the limits that a run is held to, what is counted for each, and its check.

A number is what every view shows; several sites or functions may come to one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import EagerCauses, eager_findings, findings
from compilescope.knowledge.analysis.sweeps import FAILING, UNKNOWN
from compilescope.knowledge.findings.finding import Finding, is_own
from compilescope.knowledge.findings.recompiles import recompile_findings
from compilescope.record.jobs import JobEnded
from compilescope.record.outcomes import JudgedLimit


class GateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be lost. None: not looked at."""

    breaks: int | None = None
    """Graph break sites."""
    recompiles: int | None = None
    """Compilations of a function after its first, over all functions and processes, but for the
    versions that the program needs."""
    graphs: int | None = None
    """Over all processes."""
    eager: int | None = None
    """Functions that run eagerly, as a whole or from a break on."""
    failures: int | None = None
    """Compilations that raised, whether or not the program went on."""
    violations: int | None = None
    """Places that a device does not take."""
    differences: int | None = None
    """Values that differ from their reference."""
    coverage: float | None = None
    """At least so much of the time inside compiled graphs, in percent."""
    slowdown: float | None = None
    """Of a benchmark: at most so many times the time of eager mode, or of an earlier run."""

    @property
    def given(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def over(self, other: GateLimits) -> GateLimits:
        """These, and those of `other` where these say nothing."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return msgspec.structs.replace(
            other, **{name: value for name, value in values.items() if value is not None}
        )


NOTHING_LOST = GateLimits(breaks=0, recompiles=0, eager=0, failures=0)
"""The limits of someone who gave none."""
NOTHING_WRONG = GateLimits(breaks=0, recompiles=0, failures=0)
"""The same for benchmarks."""


class GateCheck(JudgedLimit, frozen=True, kw_only=True):
    """One limit, held against the run, and what counts against it."""

    findings: tuple[Finding, ...] = ()


Count = tuple[int, tuple[Finding, ...]]


def each_once(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Without those that stand in several lists."""
    return tuple({(f.kind, f.fingerprint): f for f in found}.values())


UNTRIED = tuple(f"job/{state}" for state in UNKNOWN)
"""Rules of jobs of which nothing is known: they are a doubt, and no failure."""
CHECKED_KINDS = ("violation", "difference")
"""Kinds of findings that only a limit is held against: no baseline accepts them."""
_KINDS = {"breaks": "break", "recompiles": "recompile", "eager": "eager", "failures": "failure"}


def _swept(name: str) -> Callable[[Digest, bool], Count]:
    """Of a sweep: the sum over its jobs."""

    def counter(digest: Digest, own: bool) -> Count:
        number = sum(_of_job(name, job, own) for job in digest.jobs)
        kind = _KINDS.get(name, "")
        return number, tuple(f for f in _of_kind(kind, digest, own) if f.rule_id not in UNTRIED)

    return counter


def _of_job(name: str, job: JobEnded, own: bool) -> int:
    found: int = getattr(job, name, None) or 0
    mine = [cause for cause in job.causes if is_own(cause.file)]
    if own and name == "eager":
        found *= bool(mine)  # What made a function eager stands under its own kind.
    elif own and name in _KINDS:
        found = min(found, sum(cause.count for cause in mine if cause.kind == _KINDS[name]))
    return max(found, int(name == "failures" and job.state in FAILING))


def counters(digest: Digest) -> dict[str, Callable[[Digest, bool], Count]]:
    """By the name of the limit."""
    if digest.benchmarks:  # Each is a program of its own, with figures of its own.
        return _CHECKERS
    return {
        **({name: _swept(name) for name in _COUNTERS} if digest.jobs else _COUNTERS),
        **_CHECKERS,
    }


def _breaks(digest: Digest, own: bool) -> Count:
    number = sum(not own or is_own(site.file) for site in digest.sites)
    return number, _of_kind("break", digest, own)


def _recompiles(digest: Digest, own: bool) -> Count:
    number = 0
    for frame in digest.recompiles:
        # A recompile that the limit refused left no other trace where it was the first.
        whole = max(frame.avoidable, int(frame.limit_hit))
        if own:
            found = recompile_findings(frame, digest.root)
            mine = [each for each in found if each.own and not each.needed]
            whole = min(whole, sum(cause.count for cause in mine))
        number += whole
    return number, _of_kind("recompile", digest, own)


def _graphs(digest: Digest, own: bool) -> Count:
    return digest.graphs, ()


def _eager(digest: Digest, own: bool) -> Count:
    number, against = 0, []
    behind = EagerCauses(digest)
    for frame in digest.eager_frames:
        causes = [f for f in eager_findings(frame, behind, digest.root) if f.own or not own]
        number += bool(causes)
        against += causes
    return number, each_once(against)


def _failures(digest: Digest, own: bool) -> Count:
    failed = _of_kind("failure", digest, own)
    return len(failed), failed


def _violations(digest: Digest, own: bool) -> Count:
    """What is an error: a warning harms nothing, and of the rest nobody can say."""
    number, against = _errors(digest.violations, own)
    return number + digest.unplaced_violations, against


def _differences(digest: Digest, own: bool) -> Count:
    number, against = _errors(digest.differences, own)
    return number + sum(job.kerneldiff == "fail" for job in digest.jobs), against


def _errors(found: Iterable[Finding], own: bool) -> Count:
    errors = tuple(f for f in found if f.level == "error" and (f.own or not own))
    return len(errors), errors


def _of_kind(kind: str, digest: Digest, own: bool) -> tuple[Finding, ...]:
    return tuple(f for f in findings(digest) if f.kind == kind and (f.own or not own))


_COUNTERS: dict[str, Callable[[Digest, bool], Count]] = {
    "breaks": _breaks,
    "recompiles": _recompiles,
    "graphs": _graphs,
    "eager": _eager,
    "failures": _failures,
}
"""By the name of the limit."""

_CHECKERS: dict[str, Callable[[Digest, bool], Count]] = {
    "violations": _violations,
    "differences": _differences,
}
"""The same, of what only a device or a comparison finds out."""
