"""What came of trying a version: checks, counts before and after, a verdict, and times."""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.repair.trials.watched import Watched

VerdictOfFix = Literal["verified", "rejected", "unverified"]
CheckVerdict = Literal["pass", "fail", "unknown"]


class Check(msgspec.Struct, frozen=True):
    """One question that was asked of a version."""

    name: str
    """`breaks`, `recompiles`, `eager`, `failures`, `operators`, `output`, `exit`, `values`, ..."""
    verdict: CheckVerdict
    words: str


class Counts(msgspec.Struct, frozen=True):
    """What a run lost, in numbers."""

    breaks: int = 0
    """Distinct causes."""
    recompiles: int = 0
    graphs: int = 0
    operators: int = 0
    """Captured by Dynamo, each compiled function counted once however often it was compiled."""
    eager: int = 0
    """Functions, or rests of functions, that run eagerly."""
    failures: int = 0


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a version does what the program did, and loses less."""

    verdict: VerdictOfFix
    reason: str = ""
    """In one sentence; of a verified version a note, mostly empty."""
    checks: tuple[Check, ...] = ()
    before: Counts = Counts()
    after: Counts = Counts()
    notes: tuple[str, ...] = ()
    """What a reader should know though it decides nothing: inputs left out, sides not taken."""
    watched: Watched | None = None
    """The run of the version that was tried."""

    @property
    def is_verified(self) -> bool:
        return self.verdict == "verified"

    @property
    def ended(self) -> bool:
        """Did it come to its end as the original does? Else what it lost says nothing."""
        failed = any(check.name == "exit" and check.verdict == "fail" for check in self.checks)
        return self.watched is not None and not failed


class Spread(msgspec.Struct, frozen=True):
    """Some measurements of one thing, in seconds."""

    median: float
    low: float
    high: float
    rounds: int


class Timed(msgspec.Struct, frozen=True):
    """How long one version took; None where it could not be timed."""

    steady: Spread | None = None
    """A warm call of each compiled region, summed over the regions: the mean of a process' calls,
    and of these the median."""
    first: Spread | None = None
    """The first calls of all regions, compilation included."""
    whole: Spread | None = None
    """The whole process; from a warm one, without what `Times.imports` says."""


class Times(msgspec.Struct, frozen=True):
    """Two versions, run by turns."""

    before: Timed = Timed()
    after: Timed = Timed()
    reason: str = ""
    """Why something could not be timed."""
    imports: bool = True
    """Is starting Python and importing torch part of `whole`?"""

    @property
    def slower(self) -> bool | None:
        """Is the second one slower in steady state, beyond the spread of both? None: unknown."""
        old, new = self.before.steady, self.after.steady
        if old is None or new is None:
            return None
        return new.low > old.high
