"""Starts with empty caches, by turns with the original's: what a version saves that is meant for
compile time.

A version that loads what an earlier run compiled runs once to its end before, with empty caches.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

from compilescope.change.repair.search.attempts import error_words
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.tune.candidates.mega_cache import VARIABLE
from compilescope.change.tune.judge import NumbersJudge, judge_compile_time, judge_loaded_numbers
from compilescope.change.tune.measurement import Meter, measuring_alone
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import NOT_COMPILED, TuneTrial
from compilescope.change.tune.step_process import StepFailed, compiler_caches, rotated

_MOST_STARTS = 6
"""Of each version. Chosen: a start takes as long as hundreds of steps, and from six on two order
statistics hold a median with 95 % (`analysis.intervals`)."""
_NARROW = 1.3
"""high / low of an interval that says enough. Chosen: what is worth a file is told by then."""


def with_file(version: Version, folder: Path) -> Version:
    """The version, with its file in a folder of ours."""
    return Version(version.files, {**version.environment, VARIABLE: str(folder / "artifacts")})


class ColdStarts:
    """Measures them."""

    def __init__(self, meter: Meter, bench: Workbench, options: TuneOptions) -> None:
        self._meter = meter
        self._bench = bench
        self._options = options

    def judge(self, trials: Sequence[TuneTrial], numbers: NumbersJudge) -> None:
        """Each gets its verdict. Raises `OutOfTime` where the time is over before the last one:
        what was measured by then counts."""
        for trial in trials:
            if trial.only_starts and self._prepare(trial):
                judge_loaded_numbers(trial, numbers)
        wanted = [trial for trial in trials if trial.reason == NOT_COMPILED]
        try:
            self._measure(wanted)
        finally:
            for trial in wanted:
                judge_compile_time(trial)

    def _prepare(self, trial: TuneTrial) -> bool:
        """Run a version to its end, which leaves its file. False: it says why there is none."""
        self._options.progress(f"{trial.id}: a run that saves what it compiles", 0, 0)
        folder = self._meter.new_folder("saving", empty=True)
        caches = compiler_caches(folder)
        seen = self._bench.watch(trial.version, fresh=True, environment=caches)
        shutil.rmtree(folder, ignore_errors=True)
        if seen.timed_out or seen.exit_status:
            trial.say("rejected", f"the whole program fails with it: {error_words(seen)}")
            return False
        try:
            trial.artifact_bytes = Path(trial.version.environment[VARIABLE]).stat().st_size
        except OSError:
            trial.say("rejected", "torch had nothing to save: its caches are off or were bypassed")
            return False
        return True

    def _measure(self, trials: Sequence[TuneTrial]) -> None:
        """The original and all of these start one after the other, in an order that rotates."""
        self._meter.drop_base()
        waiting = list(trials)
        turn = 0
        while waiting and turn < _MOST_STARTS:
            names = ", ".join(trial.id for trial in waiting)
            self._options.progress(f"starting with empty caches: {names}", turn, 0)
            with measuring_alone():
                self._round(waiting, turn)
            waiting = [trial for trial in waiting if not _is_decided(trial)]
            turn += 1

    def _round(self, trials: list[TuneTrial], turn: int) -> None:
        original: TuneTrial | None = None
        taken: dict[str, float] = {}
        base_s = 0.0
        for each in rotated([original, *trials], turn):
            if each is None:
                base_s = self._meter.cold_start(Version())
                continue
            try:
                taken[each.id] = self._meter.cold_start(each.version)
            except StepFailed as failure:
                each.say("rejected", f"it fails: {failure}")
        for trial in trials:
            if trial.id in taken:
                trial.base_starts_s.append(base_s)
                trial.own_starts_s.append(taken[trial.id])
                trial.base_compile_s = statistics.median(trial.base_starts_s)
                trial.compile_s = statistics.median(trial.own_starts_s)


def _is_decided(trial: TuneTrial) -> bool:
    found = trial.compile_ratio
    if trial.verdict == "rejected":
        return True
    if found is None or found.low is None or found.high is None:
        return False
    return found.high / found.low <= _NARROW
