"""What came of trying a version: checks, losses before and after, and a verdict."""

from __future__ import annotations

import msgspec

from compilescope.model.fix_search import FixCheck, FixVerdict, Losses, UncoveredBreak
from compilescope.repair.trials.recorded_runs import CapturedRun


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a version does what the program did, and loses less."""

    verdict: FixVerdict
    reason: str = ""
    """In one sentence; of a verified version a note, mostly empty."""
    checks: tuple[FixCheck, ...] = ()
    before: Losses = Losses()
    after: Losses = Losses()
    notes: tuple[str, ...] = ()
    """What a reader should know though it decides nothing: inputs left out, sides not taken."""
    inputs: tuple[str, ...] = ()
    """The sets of inputs on which its regions were held against the original's, in words."""
    uncovered: tuple[UncoveredBreak, ...] = ()
    """Graph breaks that the original does not show."""
    captured: CapturedRun | None = None
    """The run of the version that was tried."""

    @property
    def ended(self) -> bool:
        """Did it come to its end as the original does? Else what it lost says nothing."""
        failed = any(check.name == "exit" and check.verdict == "fail" for check in self.checks)
        return self.captured is not None and not failed


class ComparedValues(msgspec.Struct):
    """What came of holding the values of a version against the original's."""

    checks: list[FixCheck] = []
    notes: list[str] = []
    inputs: list[str] = []

    def unknown(self, words: str) -> None:
        self.checks.append(FixCheck("replays", "unknown", words))

    def add(self, other: ComparedValues) -> None:
        self.checks += other.checks
        self.notes += other.notes
        self.inputs += other.inputs

    @property
    def is_settled(self) -> bool:
        return any(check.verdict != "pass" for check in self.checks)
