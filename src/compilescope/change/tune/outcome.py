"""What came of a search for a faster step: each candidate as it was tried,
and the version that is handed out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilescope.change.fixes.diffs import unified_diff
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.tune.candidate import TuneCandidate
from compilescope.change.tune.first_run import FirstRun
from compilescope.change.tune.step_place import StepPlace
from compilescope.knowledge.analysis.intervals import Ratio, ratio
from compilescope.record.body import Verdict
from compilescope.record.fix_search import Losses, Placement
from compilescope.record.outcomes import TuneAttempt, TuneOutcome, TuneVerdict

NOT_TRIED = "not tried before the search ended"
NOT_COMPILED = "how long it compiles was not measured before the search ended"
NO_COMPILE_TIME = "The time budget ended before compiling with empty caches was measured."
NO_TIME = "not tried for lack of time"
TOO_FEW = "too few steps were measured: the program or its time ended"
ONCE = "measured once, but not again before the search ended"


@dataclass(frozen=True)
class TuneResult:
    """What the user is told and handed."""

    outcome: TuneOutcome
    attempts: tuple[TuneAttempt, ...]
    files: dict[str, str] = field(default_factory=dict)
    originals: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    main: str = ""
    run: str = ""
    interrupted: bool = False
    before: Losses = field(default_factory=Losses)
    after: Losses | None = None
    """None where the whole program was not run with it."""
    first: FirstRun | None = None
    """The program's first run; its files are gone."""
    kept: tuple[TuneCandidate, ...] = ()
    """What the result is made of."""


def originals_of(files: Mapping[str, str]) -> dict[str, str]:
    """The same files as they are on disk."""
    return {file: Version().text_of(file) or "" for file in files}


@dataclass(frozen=True)
class TuneFindings:
    """All that a search has found out, as records."""

    root: str
    step: str
    device: str
    trials: Sequence[TuneTrial]
    refused: Sequence[tuple[TuneCandidate, str]]
    best: TuneTrial | None
    notes: tuple[str, ...]
    before: Losses = field(default_factory=Losses)
    share: float | None = None
    """Of the operators that the program runs as it is, those in graphs."""

    @property
    def files(self) -> dict[str, str]:
        return dict(self.best.version.files) if self.best is not None else {}

    def outcome(self) -> TuneOutcome:
        best = self.best
        found = best.ratio if best is not None else None
        every = [row for trial in self.trials for row in trial.base_rows]
        known: dict[str, Any] = {"step": self.step, "device": self.device, "notes": self.notes}
        known["placements"] = tuple(self._placements())
        if best is None or found is None:
            reason = _why_none(self.trials)
            return TuneOutcome(
                verdict="unverified", reason=reason, before_ms=_median(every), **known
            )
        before, after = _median(best.base_rows), _median(best.own_rows)
        more_s = best.compile_more_s
        return TuneOutcome(
            verdict="verified",
            reason=in_words(found),
            before_ms=before,
            after_ms=after,
            speedup=found.value,
            speedup_ci=_interval(found),
            numbers=best.numbers or "",
            memory_bytes=best.memory_bytes,
            compile_seconds=more_s,
            pays_after=_pays_after(more_s, (before or 0.0) - (after or 0.0)),
            diff=self._diff(self.files),
            environment=dict(best.version.environment),
            **known,
        )

    def _placements(self) -> Iterator[Placement]:
        """Those that were measured, after the program as it is; nothing where there is none."""
        found = [trial for trial in self.trials if trial.placement and trial.own_rows]
        if not found:
            return
        part = {each.id for each in self.best.candidates} if self.best is not None else set()
        bases = [t.peak_bytes - t.memory_bytes for t in found if t.peak_bytes and t.memory_bytes]
        built = [t.base_compile_s for t in found if t.base_compile_s is not None]
        yield Placement(
            name="",
            title="as it is",
            verdict="original",
            losses=self.before,
            share=self.share,
            warm_s=_seconds([row for trial in found for row in trial.base_rows]),
            compile_s=built[0] if built else None,
            memory_bytes=bases[0] if bases else None,
        )
        for trial in found:
            yield Placement(
                name=trial.id,
                title=trial.placement,
                verdict=trial.verdict,
                reason=trial.reason,
                losses=trial.losses,
                share=trial.share,
                warm_s=_seconds(trial.own_rows),
                compile_s=trial.compile_s,
                memory_bytes=trial.peak_bytes,
                chosen=trial.id in part,
                diff=self._diff(trial.version.files),
            )

    def attempts(self) -> Iterator[TuneAttempt]:
        part = {each.id for each in self.best.candidates} if self.best is not None else set()
        for trial in self.trials:
            candidate, found, quicker = trial.candidates[0], trial.ratio, trial.compile_ratio
            yield TuneAttempt(
                candidate=candidate.id,
                title=candidate.title,
                verdict=trial.verdict,
                reason=trial.reason,
                speedup=found.value if found is not None else None,
                speedup_ci=_interval(found) if found is not None else None,
                numbers=trial.numbers or "",
                numbers_reason=trial.numbers_reason,
                memory_bytes=trial.memory_bytes,
                compile_seconds=trial.compile_more_s,
                compile_speedup=quicker.value if quicker is not None else None,
                compile_speedup_ci=_interval(quicker) if quicker is not None else None,
                artifact_bytes=trial.artifact_bytes,
                needs_seconds=trial.needs_s,
                price=candidate.price,
                diff=self._diff(trial.version.files),
                kept=candidate.id in part,
            )
        for candidate, reason in self.refused:
            yield TuneAttempt(
                candidate=candidate.id,
                title=candidate.title,
                verdict="refused",
                reason=reason,
                price=candidate.price,
            )

    def _diff(self, files: Mapping[str, str]) -> str:
        return unified_diff(originals_of(files), files, self.root)


def _why_none(trials: Sequence[TuneTrial]) -> str:
    if not trials:
        return "no candidate applies"
    if not any(trial.own_rows or trial.own_starts_s for trial in trials):
        return "no candidate was measured"
    return "no candidate is verified to make the step faster"


def _median(rows: Sequence[Sequence[float]]) -> float | None:
    values = [value for row in rows for value in row]
    return statistics.median(values) if values else None


def _seconds(rows: Sequence[Sequence[float]]) -> float | None:
    found = _median(rows)
    return None if found is None else found / 1000


def _interval(found: Ratio) -> tuple[float, float] | None:
    return None if found.low is None or found.high is None else (found.low, found.high)


def _pays_after(more_s: float | None, saved_ms: float) -> int | None:
    if more_s is None or saved_ms <= 0:
        return None
    return max(0, round(more_s * 1000 / saved_ms))


# One candidate under way: its version, what was measured of it, and what is said of it.


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
    peak_bytes: int | None = None
    losses: Losses | None = None
    """Of a whole run of it; only of a placement, and where there was time. So is the share of its
    operators that run in graphs."""
    share: float | None = None
    compile_s: float | None = None
    base_compile_s: float | None = None
    """Its and the original's, with empty caches, at the same time; None where that was not
    measured. Of what is meant for compile time the medians of the starts."""
    own_starts_s: list[float] = field(default_factory=list)
    base_starts_s: list[float] = field(default_factory=list)
    """What it and the original compiled in starts with empty caches, by turns."""
    artifact_bytes: int | None = None
    """Of the file that its starts load."""
    needs_s: float | None = None
    """At least so long it compiles; only where that is longer than it had."""
    warm_compile_s: tuple[float, float] | None = None
    """What it and the original compiled in the search, beginning with what the first run had
    compiled."""
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
    def compile_ratio(self) -> Ratio | None:
        """Over all starts."""
        if not self.own_starts_s:
            return None
        return ratio([self.base_starts_s], [self.own_starts_s], paired=True)

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
    def is_offered(self) -> bool:
        return self.verdict in ("verified", "apart")

    @property
    def autotunes(self) -> bool:
        return any(each.autotunes for each in self.candidates)

    @property
    def placement(self) -> str:
        """What is compiled with it; empty where that is not what it changes."""
        return self.candidates[0].placement if len(self.candidates) == 1 else ""

    @property
    def lower_precision(self) -> bool:
        return any(each.lower_precision for each in self.candidates)

    @property
    def only_starts(self) -> bool:
        return any(each.only_starts for each in self.candidates)

    @property
    def for_compile_time(self) -> bool:
        return any(each.for_compile_time for each in self.candidates)

    def say_not_ready(self, after_s: float, first_s: float) -> None:
        """It compiled for so long without an end. `first_s`: what the program's first run took."""
        self.needs_s = max(after_s, first_s)
        words = f"still compiling after {after_s:.0f} s, at the end of its share of the time budget"
        if first_s > after_s:
            self.say("unverified", f"{words}; it needs about {first_s:.0f} s, as the first run did")
        else:
            self.say("unverified", f"{words}: it needs longer")

    def say(self, verdict: TuneVerdict, reason: str) -> None:
        self.verdict, self.reason = verdict, reason


def warm_prices(trials: Sequence[TuneTrial]) -> Iterator[str]:
    """What is known of the price where it was not measured with empty caches."""
    for trial in trials:
        if trial.compile_s is None and trial.warm_compile_s is not None:
            own_s, base_s = trial.warm_compile_s
            yield (
                f"With what the first run had compiled, {trial.id} took {own_s:.0f} s to compile, "
                f"the original {base_s:.0f} s."
            )


def in_words(found: Ratio) -> str:
    """`1.83x (1.80 to 1.86)`."""
    if found.low is None or found.high is None:
        return f"{found.value:.2f}x"
    return f"{found.value:.2f}x ({found.low:.2f} to {found.high:.2f})"
