"""Steps of a search, and what their runs show: losses in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilescope.fixes.subject import Subject
from compilescope.repair.search.attempts import Tried
from compilescope.repair.search.outcome import Attempt, Totals
from compilescope.repair.trials.verification import Verification
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import Watched
from compilescope.rules.findings import findings


@dataclass(frozen=True)
class Step:
    """A version that was kept, and what a run of it showed."""

    version: Version
    watched: Watched
    kept: list[Tried] = field(default_factory=list)
    verification: Verification | None = None
    """Against the step before."""


def step_of(version: Version, kept: list[Tried], verification: Verification) -> Step | None:
    if verification.verdict != "verified" or verification.watched is None:
        return None
    return Step(version, verification.watched, kept, verification)


def totals(watched: Watched) -> Totals:
    seen = watched.digest
    return Totals(
        breaks=len(seen.sites),
        recompiles=sum(frame.count for frame in seen.recompiles),
        graphs=seen.graphs,
        operators=watched.operators,
        eager=len(seen.eager_frames),
        failures=len(seen.failures),
    )


def has_vanished(subject: Subject, verification: Verification) -> bool:
    """Has another fix mended this one too?"""
    if verification.watched is None:
        return False
    after = findings(verification.watched.digest)
    return subject.finding.fingerprint not in {each.fingerprint for each in after}


def environment_of(kept: list[Tried]) -> dict[str, str]:
    return {name: value for tried in kept for name, value in tried.patch.environment.items()}


def ending_of(watched: Watched) -> tuple[int, bool]:
    return watched.exit_status, watched.timed_out


def losses_in_words(watched: Watched) -> str:
    lost = totals(watched)
    parts = [
        f"{number} {name if number == 1 else f'{name}s'}"
        for number, name in (
            (lost.breaks, "graph break"),
            (lost.recompiles, "recompile"),
            (lost.failures, "failed compilation"),
        )
        if number
    ]
    return ", ".join(parts) or "nothing to fix"


def still_lost(watched: Watched, attempts: list[Attempt]) -> list[tuple[str, str]]:
    """What is still lost, with the best reason that there is."""
    reasons = {each.fingerprint: each.reason for each in attempts if not each.kept}
    told = []
    for finding in findings(watched.digest):
        place = f"{finding.file}:{finding.line}"
        told.append((place, reasons.get(finding.fingerprint) or finding.remedy or finding.message))
    return told


def last_words(watched: Watched) -> str:
    lines = [line for line in watched.stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip().rstrip(".")[:200] if lines else "no error message"
