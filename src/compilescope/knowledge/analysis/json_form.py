"""A digest and its findings as `--json` has them: documented keys, which outlive our own names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.digest import Digest
    from compilescope.knowledge.analysis.preflight import DeviceReport
    from compilescope.knowledge.findings.breaks import BreakFinding
    from compilescope.knowledge.findings.eager import EagerFinding
    from compilescope.knowledge.findings.failures import FailureFinding
    from compilescope.knowledge.findings.finding import Finding
    from compilescope.knowledge.findings.recompiles import RecompiledFrame, RecompileFinding
    from compilescope.knowledge.findings.violations import ViolationFinding


_PLACE = ("file", "line", "column", "end_column", "end_line", "function", "source")
_CALL = ("file", "line", "function", "source")
_EXPLAINED = ("rule", "why", "remedy", "advice")
SITE_KEYS = (
    *("gb_id", "gb_type", *_PLACE, "explanation", "hints", "context", "wrappers", "events"),
    *("frames", "ranks", "tests", "outcome", "gave_up", "in_torch", "fingerprint", "because"),
    *("category", *_EXPLAINED, "consequence_of", "lost_ms", "retrace_seconds", "called_at"),
)
EAGER_KEYS = (
    *("file", "line", "function", "reason", "cause", "gb_id", "rest_only", "may_hide_breaks"),
    *("events", "ranks", "because"),
)
GUARD_KEYS = (
    *("guard", "subject", "expected", "actual", "kind", "file", "line", "source", "count"),
    *("also", "seconds", "calls_after", "needed", *_EXPLAINED, "called_at"),
)
FAILURE_KEYS = (
    *("error", "cause", "message", "link", "phase", "gb_id", "gb_type", "hints", "backend"),
    *(*_PLACE, "suppressed", "count", "ranks", "because", "repro", "no_repro"),
    *("category", *_EXPLAINED),
)
VIOLATION_KEYS = (
    *("rule", "op", "file", "line", "function", "source", "found", "allowed", "remedy"),
    *("severity", "stage", "graph", "model", "node"),
)
RECORDED_VIOLATION_KEYS = (
    *(each for each in VIOLATION_KEYS if each != "graph"),
    *("device", "rank", "repro", "no_repro"),
)
FINDING_KEYS = (
    *("kind", "rule", "fingerprint", "title", "message", "remedy", "level", *_PLACE),
    *("count", "ranks", "because", "advice", "seconds", "lost_ms", "called_at"),
)


def digest_json(seen: Digest) -> dict[str, Any]:
    """As `show --json` prints it. A record leaves out what is as usual; here a reader finds it."""
    return {
        key: list(each) if isinstance(each, Iterator) else each
        for key, each in digest_entries(seen).items()
    }


def digest_entries(seen: Digest) -> dict[str, Any]:
    """As `digest_json`, for `put_json`: the entries of its long lists are made one by one."""
    return {
        **msgspec.structs.asdict(seen),
        "sites": map(site_json, seen.sites),
        "eager_frames": map(eager_json, seen.eager_frames),
        "recompiles": map(recompiled_json, seen.recompiles),
        "failures": map(failure_json, seen.failures),
        "violations": map(finding_json, seen.violations),
        "differences": map(finding_json, seen.differences),
        "benchmarks": map(msgspec.structs.asdict, seen.benchmarks),
    }


def site_json(site: BreakFinding) -> dict[str, Any]:
    return _values(site, SITE_KEYS)


def eager_json(frame: EagerFinding) -> dict[str, Any]:
    return _values(frame, EAGER_KEYS)


def recompiled_json(frame: RecompiledFrame) -> dict[str, Any]:
    causes = [
        {**_guard_json(each), "together": [_guard_json(one) for one in each.together]}
        for each in frame.causes
    ]
    return {**msgspec.structs.asdict(frame), "avoidable": frame.avoidable, "causes": causes}


def _guard_json(cause: RecompileFinding) -> dict[str, Any]:
    known = {"kind": cause.guard_kind}
    if not cause.is_placed:
        return _values(cause, GUARD_KEYS, **known, file=None, line=None)
    return _values(cause, GUARD_KEYS, **known)


def failure_json(failure: FailureFinding) -> dict[str, Any]:
    return _values(failure, FAILURE_KEYS, message=failure.text)


def recorded_violation_json(finding: ViolationFinding) -> dict[str, Any]:
    """One that a backend recorded while the program ran."""
    known = {"rank": next(iter(finding.ranks), 0), **_said_of(finding)}
    return _values(finding, RECORDED_VIOLATION_KEYS, **known)


def device_report_json(report: DeviceReport) -> dict[str, Any]:
    """As `preflight --json` prints a device."""
    value = msgspec.structs.asdict(report)
    for name in ("violations", "unknown"):
        value[name] = [_values(each, VIOLATION_KEYS, **_said_of(each)) for each in value[name]]
    return value


def _said_of(finding: ViolationFinding) -> dict[str, str]:
    return {"remedy": finding.first_step, "source": finding.source.strip()}


def findings_json(found: Iterable[Finding]) -> list[dict[str, Any]]:
    return [finding_json(each) for each in found]


def finding_json(finding: Finding) -> dict[str, Any]:
    """Any kind, in one list with the others."""
    return _values(finding, FINDING_KEYS, rule=finding.rule_id, remedy=finding.first_step)


def _values(finding: Finding, keys: tuple[str, ...], **known: Any) -> dict[str, Any]:
    value = {key: known[key] if key in known else getattr(finding, key) for key in keys}
    if finding.called_at is not None and "called_at" in value:
        value["called_at"] = {name: getattr(finding.called_at, name) for name in _CALL}
    return value
