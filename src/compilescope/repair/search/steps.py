"""The steps of a search: each version that was kept, and what it still loses."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilescope.analysis.findings import findings
from compilescope.fixes.subject import Subject
from compilescope.model.fix_search import FixAttempt, FixLeft
from compilescope.processes.outcome import last_words
from compilescope.repair.search.attempts import Tried
from compilescope.repair.trials.losses import losses_of
from compilescope.repair.trials.verification import Verification
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import CapturedRun


@dataclass(frozen=True)
class SearchStep:
    """A version that was kept, and what a run of it showed."""

    version: Version
    watched: CapturedRun
    kept: list[Tried] = field(default_factory=list)
    verification: Verification | None = None
    """Against the step before."""


def step_of(version: Version, kept: list[Tried], verification: Verification) -> SearchStep | None:
    if verification.verdict != "verified" or verification.watched is None:
        return None
    return SearchStep(version, verification.watched, kept, verification)


def has_vanished(subject: Subject, verification: Verification) -> bool:
    """Has another fix mended this one too?"""
    if verification.watched is None:
        return False
    after = findings(verification.watched.digest)
    return subject.finding.fingerprint not in {each.fingerprint for each in after}


def environment_of(kept: list[Tried]) -> dict[str, str]:
    return {name: value for tried in kept for name, value in tried.patch.environment.items()}


def ending_of(watched: CapturedRun) -> tuple[int, bool]:
    return watched.exit_status, watched.timed_out


def losses_in_words(watched: CapturedRun) -> str:
    lost = losses_of(watched.digest, watched.operators)
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


def still_lost(watched: CapturedRun, attempts: list[FixAttempt]) -> list[FixLeft]:
    """What is still lost, with the best reason that there is."""
    reasons = {each.fingerprint: each.reason for each in attempts if not each.kept}
    told = []
    for finding in findings(watched.digest):
        place = f"{finding.file}:{finding.line}"
        why = reasons.get(finding.fingerprint) or finding.first_step or finding.message
        told.append(FixLeft(place, why))
    return told


def error_words(watched: CapturedRun) -> str:
    return last_words(watched.stderr).rstrip(".")[:200] or "no error message"
