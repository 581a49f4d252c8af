"""Ways to say what is compiled, held against each other: of those that win as much, the one is
handed out whose calls are fastest, and of those alike the smallest change.

They are compared by calls of what the original compiles, whatever a version compiles of it.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from compilescope.base.processes.deadline import OutOfTime
from compilescope.change.fixes.catalogue import fixes_for
from compilescope.change.fixes.subject import Subject
from compilescope.change.repair.search.attempts import SearchStep, step_of, try_placement
from compilescope.change.repair.search.budget import Budget
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.try_log import Tried, TryLog
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.losses import losses_of
from compilescope.change.repair.trials.recorded_runs import WeighedRun, share_of
from compilescope.change.repair.trials.verifier import NEVER_WARM, spread
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.record.fix_search import Losses, Placement, Spread, Timed, Times

_OTHERS = 2
"""Beside the one that was found first. Chosen: each is verified by itself, which is most of what a
search costs."""
_ROUNDS = 2
"""Of measuring, by turns; the first one with empty caches. Chosen: what disturbs one round is told
from what a version takes."""
_LONG_S = 20.0
"""Of a run, from which on there is one other and one round. Chosen: what is compared is not to take
longer than what was searched."""
_ALIKE = 1.05
"""Times the fastest version's slower round. Chosen: less is not told apart in so few calls, and a
smaller change is worth it."""
SHARE_ALIKE = 0.8
"""Times the largest share of compiled operators, where nothing was timed. Chosen: the loss behind a
model is a few operators, and a model's blocks are most of them."""

_TOGETHER = "all fixes"


@dataclass
class _Placed:
    name: str
    title: str
    version: Version
    losses: Losses
    diff: str = ""
    step: SearchStep | None = None
    weighed: list[WeighedRun] = field(default_factory=list)
    share: float | None = None

    @property
    def lost(self) -> tuple[tuple[int, int, int], int]:
        return self.losses.every_call, self.losses.avoidable

    @property
    def warm_s(self) -> float | None:
        found = [each.warm_s for each in self.weighed if each.warm_s is not None]
        return min(found) if found else None

    @property
    def steady(self) -> Spread | None:
        return spread([each.warm_s for each in self.weighed if each.warm_s is not None])

    @property
    def lines(self) -> int:
        """That the change adds or removes."""
        rows = self.diff.splitlines()
        return sum(each[:1] in "+-" and each[:3] not in ("+++", "---") for each in rows if each)


class Placements:
    """The comparison for one search."""

    def __init__(
        self, bench: Workbench, options: SearchOptions, log: TryLog, budget: Budget
    ) -> None:
        self._bench = bench
        self._options = options
        self._log = log
        self._budget = budget
        self._rows: list[_Placed] = []
        self._failed: list[Placement] = []

    def compare(self, light: TrialBaseline, steps: Sequence[SearchStep]) -> SearchStep | None:
        """The version that is better than what was found; None where none is. `steps`: the
        original and what was kept, which has been proven."""
        kept = [tried for step in steps for tried in step.kept]
        # What was kept before it changed more than what is compiled.
        mended = steps[1].kept if len(steps) > 1 else []
        placed = next((each for each in mended if self._placement(each)), None)
        if placed is None:
            return None
        last, first = steps[-1], steps[0].captured
        found = self._row(placed, last)
        if len(kept) > 1:
            found.title = _TOGETHER
            found.diff = "".join(self._log.attempt(each).diff for each in kept)
        original = losses_of(first.digest, first.operators)
        self._rows = [_Placed("", "as it is", Version(), original), found]
        with suppress(OutOfTime):
            # Proposed for the program as it is: its cause is the first one that was mended.
            self._try_others(light, steps[1].kept[0].subject, found.name)
        if len(self._rows) < 3:
            self._rows = []  # There is no choice.
            return None
        with suppress(OutOfTime):
            self._weigh()
        best = _best(self._rows[1:])
        return None if best.step is last else best.step

    def told(self, chosen: SearchStep) -> tuple[Placement, ...]:
        """The table."""
        return (*(_told(row, chosen) for row in self._rows), *(self._failed if self._rows else ()))

    def times(self, chosen: SearchStep) -> Times | None:
        """Of what is handed out, where it was timed for the comparison."""
        found = [row for row in self._rows if row.version is chosen.version]
        if not found or not all(row.weighed for row in (self._rows[0], found[0])):
            return None
        old, new = (Timed(steady=row.steady) for row in (self._rows[0], found[0]))
        reason = NEVER_WARM if old.steady is None or new.steady is None else ""
        return Times(old, new, reason, imports=bool(self._bench.cold))

    @property
    def _is_long(self) -> bool:
        return self._bench.watch_s > _LONG_S

    def _placement(self, tried: Tried) -> str:
        """What is compiled with it, in words; empty where it is about something else."""
        wanted = self._log.attempt(tried).fix
        fixes = (fix for fix in fixes_for(tried.subject) if fix.id == wanted)
        return next((fix.placement for fix in fixes), "")

    def _row(self, tried: Tried, step: SearchStep) -> _Placed:
        attempt = self._log.attempt(tried)
        lost = losses_of(step.captured.digest, step.captured.operators)
        title = self._placement(tried)
        return _Placed(attempt.fix, title, step.version, lost, attempt.diff, step)

    def _try_others(self, light: TrialBaseline, subject: Subject, known: str) -> None:
        others = [
            fix
            for fix in fixes_for(subject)
            if fix.placement and fix.id != known and self._options.wants_fix(fix.id)
        ]
        count = 0
        for fix in others:
            if count == (1 if self._is_long else _OTHERS) or not self._budget.allows(_ROUNDS):
                return
            found = try_placement(fix, subject, light, self._options, self._log)
            if found is None:
                continue
            count += 1
            other = self._log.attempt(found)
            version = Version().with_patch(found.patch)
            step = step_of(version, [found], found.verification)
            if step is not None:
                self._rows.append(self._row(found, step))
            else:
                lost = found.verification.after if found.verification.ended else None
                self._failed.append(
                    Placement(
                        name=fix.id,
                        title=fix.placement,
                        verdict=other.verdict,
                        reason=other.reason,
                        losses=lost,
                        diff=other.diff,
                    )
                )

    def _weigh(self) -> None:
        self._options.progress("comparing placements", 0, 0)
        if not self._budget.allows(1 + len(self._rows)):
            return
        every = self._bench.weigh(Version(), "all")
        for row in self._rows:
            row.share = share_of(self._bench.weigh(row.version, "graphs"), every)
        rounds = 1 if self._is_long else _ROUNDS
        if not self._options.timed or not self._budget.allows(rounds * len(self._rows)):
            return
        with ExitStack() as opened:
            caches = [
                Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="compilescope-")))
                for _ in self._rows
            ]
            for _ in range(rounds):
                for row, cache in zip(self._rows, caches, strict=True):
                    weighed = self._bench.weigh(row.version, caches=cache)
                    row.weighed += [weighed] if weighed is not None else []


def _best(rows: Sequence[_Placed]) -> _Placed:
    least = min(row.lost for row in rows)
    alike = [row for row in rows if row.lost == least]
    warm = [row.steady for row in alike if row.steady is not None]
    if len(warm) == len(alike):
        slowest = min(warm, key=lambda each: each.median).high
        alike = [row for row in alike if row.steady and row.steady.low <= _ALIKE * slowest]
    elif all(row.share is not None for row in alike):
        most = max(row.share or 0.0 for row in alike)
        alike = [row for row in alike if (row.share or 0.0) >= SHARE_ALIKE * most]
    return min(alike, key=lambda row: row.lines)


def _told(row: _Placed, chosen: SearchStep) -> Placement:
    first = row.weighed[0] if row.weighed else None
    memory = [each.memory_bytes for each in row.weighed]
    return Placement(
        name=row.name,
        title=row.title,
        verdict="verified" if row.step is not None else "original",
        losses=row.losses,
        share=row.share,
        warm_s=row.warm_s,
        compile_s=first.compile_s if first is not None else None,
        memory_bytes=round(statistics.median(memory)) if memory else None,
        chosen=row.version is chosen.version,
        diff=row.diff,
    )
