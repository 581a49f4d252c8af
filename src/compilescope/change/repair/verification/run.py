"""Runs both versions, compares and times them, and keeps what came of it with the second's run."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.change.fixes.diffs import unified_diff
from compilescope.change.repair.search.options import ProgramOptions
from compilescope.change.repair.search.outcome import copy_run
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.verifier import NEVER_WARM, measure
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.repair.verification.comparison import (
    ChangeComparison,
    ComparedChange,
    counted,
    is_slower,
)
from compilescope.change.repair.verification.version_pairs import VersionPair
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.command_run import append_bodies
from compilescope.record.fix_search import ChangeOutcome, FixCheck, Spread, Timed, Times

_ROUNDS, _COLD_ROUNDS = 3, 2
"""Of timing, as for a fix. Chosen: a round runs both versions once more, and three are the fewest
of which one is in the middle."""
_MOST_DIFF = 200_000
"""Letters of the change that a run keeps. Chosen: a page can show it."""


@dataclass(frozen=True)
class VerifiedChange:
    """What the user is told."""

    outcome: ChangeOutcome
    run: str = ""
    """The id of the second version's run, where it was kept."""
    new: tuple[Finding, ...] = ()
    """The causes that only the second version has."""
    files: tuple[str, ...] = ()
    """That differ."""


def verify_change(
    target: Target,
    pair: VersionPair,
    options: ProgramOptions,
    *,
    timed: bool = True,
    behavior: bool = True,
    warm: WarmParent | None = None,
) -> VerifiedChange:
    """Raises `ToolError` where the program cannot be run at all. Without `behavior` only what it
    loses is compared, and how it ends."""
    target.check()
    if pair.is_same and not pair.others:
        raise ToolError(f"{pair.name} changes nothing: both versions have the same files.")
    deadline = options.deadline or Deadline(options.budget_s)
    with (
        WarmParent() as own,
        options.workbench(
            target, deadline=deadline, warm=warm or own, original=pair.before
        ) as bench,
    ):
        return _Verification(target, pair, options, bench, timed=timed, behavior=behavior).run()


class _Verification:
    def __init__(
        self,
        target: Target,
        pair: VersionPair,
        options: ProgramOptions,
        bench: Workbench,
        *,
        timed: bool,
        behavior: bool,
    ) -> None:
        self._target, self._pair = target, pair
        self._options, self._bench = options, bench
        self._timed, self._behavior = timed, behavior
        self._runs: tuple[list[CapturedRun], list[CapturedRun]] = ([], [])

    def run(self) -> VerifiedChange:
        comparison = ChangeComparison(self._bench, self._pair.before, self._pair.after)
        result, times = comparison.result, None
        try:
            times = self._compared(comparison)
        except OutOfTime:
            if not result.reason:
                result.verdict = "unknown"
                result.reason = "the time budget ran out before both versions were compared"
        return self._told(result, times)

    def _compared(self, comparison: ChangeComparison) -> Times | None:
        show, result = self._options.progress, comparison.result
        show("running both versions", 0, 0)
        result.reason = comparison.run_both()
        if result.reason:
            return None
        if self._behavior:
            show("comparing compiled code", 0, 0)
            comparison.compare_behavior()
            show("counting operators", 0, 0)
            comparison.count_operators()
        else:
            comparison.compare_end()
        comparison.judge(behavior_compared=self._behavior)
        self._tell_others(result)
        if not self._timed or result.verdict == "changed":
            return None
        if not (result.before and result.before.digest.graphs):
            return None
        show("timing both versions", 0, 0)
        try:
            times = self._measured()
        except OutOfTime:
            return Times(reason="the time budget ran out")
        if result.verdict == "verified" and is_slower(times):
            result.verdict = "worse"
            result.reason = "a warm call is slower, the intervals of both apart"
            result.checks.append(FixCheck("time", "fail", result.reason))
        if times.warm_call is None and not times.reason:
            times = msgspec.structs.replace(times, reason=NEVER_WARM)
        return times

    def _measured(self) -> Times:
        """Slower is only what two measurements show: of one, three rounds of either version lie
        apart by chance one time in twenty."""
        before, after = self._pair.before, self._pair.after
        cold, seen = _COLD_ROUNDS, self._runs
        first = measure(self._bench, before, after, rounds=_ROUNDS, cold=cold, seen=seen)
        if not is_slower(first):
            return first
        again = measure(self._bench, before, after, rounds=_ROUNDS, cold=0, seen=([], []))
        return Times(
            _joined(first.before, again.before),
            _joined(first.after, again.after),
            first.reason,
            first.imports,
        )

    def _tell_others(self, result: ComparedChange) -> None:
        """Files that are no modules: nothing took their place, and what reads them is not known."""
        others = [os.path.relpath(path, self._target.root) for path in self._pair.others]
        if not others:
            return
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if others[3:] else "")
        result.not_compared.append(
            f"Files that are no Python modules: {shown}; both versions ran with those on disk."
        )
        touched = [name for name in others if not name.lower().endswith(_HARMLESS)]
        if touched and result.verdict == "verified" and self._behavior:
            result.verdict = "unknown"
            result.reason = f"{touched[0]} changes too, which the program may read"

    def _told(self, result: ComparedChange, times: Times | None) -> VerifiedChange:
        pair = self._pair
        before, after = result.before, result.after
        home = self._options.home
        original = copy_run(before.folder, home, _nothing) if before and home else None
        outcome = ChangeOutcome(
            verdict=result.verdict,
            reason=result.reason,
            name=pair.name,
            before_name=pair.before_name,
            after_name=pair.after_name,
            original=original.name if original is not None else "",
            checks=tuple(result.checks),
            compared=tuple(result.compared),
            not_compared=tuple(result.not_compared),
            inputs=tuple(result.inputs),
            counts=counted(
                [*([before] if before else []), *self._runs[0]],
                [*([after] if after else []), *self._runs[1]],
            ),
            share=result.share,
            times=times,
            new=tuple(result.new),
            uncovered=tuple(result.uncovered),
            gone=tuple(result.gone),
            slower=is_slower(times),
            behavior=self._behavior,
            diff=self._diff(),
        )
        seen = after or before
        run = None
        if seen is not None and home is not None:
            run = copy_run(seen.folder, home, lambda part: append_bodies(part, [outcome]))
        return VerifiedChange(
            outcome,
            run.name if run is not None else "",
            tuple(result.found),
            tuple(sorted({*pair.before.files, *pair.after.files})),
        )

    def _diff(self) -> str:
        pair = self._pair
        paths = {*pair.before.files, *pair.after.files, *pair.before.absent, *pair.after.absent}
        texts = [
            {path: version.text_of(path) or "" for path in paths}
            for version in (pair.before, pair.after)
        ]
        whole = unified_diff(texts[0], texts[1], self._target.root)
        return whole if len(whole) <= _MOST_DIFF else ""


def _joined(first: Timed, again: Timed) -> Timed:
    """Warm calls of both measurements: one interval."""
    one, two = first.steady, again.steady
    if one is None or two is None:
        return first
    ends = (min(one.low, two.low), max(one.high, two.high))
    middle = statistics.median((one.median, two.median))
    return msgspec.structs.replace(first, steady=Spread(middle, *ends, one.rounds + two.rounds))


_HARMLESS = (".md", ".rst", ".gitignore", ".lock")


def _nothing(folder: Path) -> None:
    """The first version's run is kept as it is."""
