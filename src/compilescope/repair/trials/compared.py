"""What came of holding a version against the original."""

from __future__ import annotations

import msgspec

from compilescope.repair.trials.verification import Check


class Compared(msgspec.Struct):
    """Checks, and what decides nothing."""

    checks: list[Check] = []
    notes: list[str] = []

    def unknown(self, words: str) -> None:
        self.checks.append(Check("replays", "unknown", words))

    def add(self, other: Compared) -> None:
        self.checks += other.checks
        self.notes += other.notes

    @property
    def is_settled(self) -> bool:
        return any(check.verdict != "pass" for check in self.checks)
