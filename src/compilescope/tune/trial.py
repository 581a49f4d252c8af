"""One candidate under way: its version, what was measured of it, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from compilescope.analysis.intervals import Ratio, ratio
from compilescope.model.body import Verdict
from compilescope.model.outcomes import TuneVerdict
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.workbench import Workbench
from compilescope.tune.candidate import TuneCandidate
from compilescope.tune.steps.place import StepPlace

NOT_TRIED = "not tried before the search ended"
NOT_COMPILED = "how long it compiles was not measured before the search ended"
NO_COMPILE_TIME = "The time budget ended before compiling with empty caches was measured."
NO_TIME = "not tried for lack of time"
TOO_FEW = "too few steps were measured: the program or its time ended"
ONCE = "measured once, but not again before the search ended"


@dataclass(frozen=True)
class OtherProgram:
    """What runs instead of the program: a script that was written of it."""

    bench: Workbench
    place: StepPlace
    """Of the same step."""


@dataclass
class TuneTrial:
    """A version that is held against the original."""

    candidates: tuple[TuneCandidate, ...]
    """One; several in a combination."""
    version: Version
    folder: Path
    """Caches of its compilers, and what its first steps computed."""
    verdict: TuneVerdict = "unverified"
    reason: str = NOT_TRIED
    program: OtherProgram | None = None
    """None: the version is one of the program itself."""
    base_rows: list[list[float]] = field(default_factory=list)
    own_rows: list[list[float]] = field(default_factory=list)
    """A row for each measurement; both rows of one were taken by turns."""
    numbers: Verdict | None = None
    numbers_reason: str = ""
    memory_bytes: int | None = None
    """More than the original."""
    compile_s: float | None = None
    base_compile_s: float | None = None
    """Its and the original's, with empty caches, at the same time; None where that was not
    measured."""
    promising: bool = False
    """Faster in the first measurement, with the right numbers."""

    @property
    def id(self) -> str:
        return "+".join(each.id for each in self.candidates)

    @property
    def ratio(self) -> Ratio | None:
        """Over all measurements."""
        return ratio(self.base_rows, self.own_rows, paired=True) if self.own_rows else None

    @property
    def value(self) -> float:
        found = self.ratio
        return found.value if found is not None else 0.0

    @property
    def compile_more_s(self) -> float | None:
        """Than the original."""
        own, base = self.compile_s, self.base_compile_s
        return None if own is None or base is None else own - base

    @property
    def autotunes(self) -> bool:
        return any(each.autotunes for each in self.candidates)

    @property
    def lower_precision(self) -> bool:
        return any(each.lower_precision for each in self.candidates)

    @property
    def for_compile_time(self) -> bool:
        return any(each.for_compile_time for each in self.candidates)

    def say(self, verdict: TuneVerdict, reason: str) -> None:
        self.verdict, self.reason = verdict, reason


def in_words(found: Ratio) -> str:
    """`1.83x (1.80 to 1.86)`."""
    if found.low is None or found.high is None:
        return f"{found.value:.2f}x"
    return f"{found.value:.2f}x ({found.low:.2f} to {found.high:.2f})"
