"""Measures trials against the original: the original's process lives on, theirs come and go."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from compilescope.processes.deadline import OutOfTime
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.workbench import Workbench
from compilescope.source.refusals import Refused
from compilescope.tune.options import TuneOptions
from compilescope.tune.race import LEAST_TURNS, Contestant, run_race
from compilescope.tune.settled import SettledVersion, settle
from compilescope.tune.stepped import StepFailed, Stepped
from compilescope.tune.steps.place import StepPlace, marked
from compilescope.tune.trial import TuneTrial

_SETTLING = 10
"""Steps that a version takes before it is measured, about."""


@contextlib.contextmanager
def measuring_alone() -> Iterator[None]:
    """Two searches on one machine do not measure at the same time; they may compile."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    path = Path(tempfile.gettempdir(), f"compilescope-measuring-{os.getuid()}.lock")
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Meter:
    """Runs versions in turns with the original."""

    def __init__(
        self, bench: Workbench, wishes: TuneOptions, place: StepPlace, steps: int | None
    ) -> None:
        """`steps` of the program in all; None where it has no end that was seen."""
        self._bench = bench
        self._wishes = wishes
        self._place = place
        self._left = None if steps is None else max(1, steps - _SETTLING)
        self._folder = Path(tempfile.mkdtemp(prefix="compilescope-tune-"))
        self.original = self.new_folder("original")
        self._base: SettledVersion | None = None
        self.compile_s: float | None = None
        """Of the original, with empty caches."""
        self.base_memory: int | None = None

    @property
    def root(self) -> Path:
        return self._folder

    def new_folder(self, name: str) -> Path:
        folder = self._folder / f"{len(list(self._folder.iterdir()))}-{name[:60]}"
        folder.mkdir()
        return folder

    def close(self) -> None:
        self.drop_base()
        shutil.rmtree(self._folder, ignore_errors=True)

    def with_mark(self, version: Version) -> Version:
        text = version.text_of(self._place.file)
        if text is None:
            raise Refused(f"{self._place.file} cannot be read")
        return Version(
            {**version.files, self._place.file: marked(text, [self._place])}, version.environment
        )

    def measure(self, trials: Sequence[TuneTrial], doing: str) -> None:
        """Each gets a row of turns, or says why not."""
        at_once = self._wishes.at_once
        for start in range(0, len(trials), at_once):
            self._measure(trials[start : start + at_once], doing)

    def _measure(self, trials: Sequence[TuneTrial], doing: str) -> None:
        names = ", ".join(trial.id for trial in trials)
        with contextlib.ExitStack() as opened:
            started: list[tuple[TuneTrial, Stepped]] = []
            for trial in trials:
                with contextlib.suppress(Refused):
                    process = self._start(trial.version, trial.folder)
                    started.append((trial, opened.enter_context(process)))
            base = self._settled_base()
            racing: list[tuple[TuneTrial, Contestant]] = []
            for trial, process in started:
                self._wishes.progress(f"{doing}: compiling {trial.id}", 0, 0)
                try:
                    racing.append((trial, Contestant(settle(process))))
                except StepFailed as failure:
                    trial.say("rejected", f"it fails: {failure}")
            self._race(base, [each for _, each in racing], f"{doing}: {names}")
            for trial, each in racing:
                self._note(trial, each, base)

    def _race(self, base: SettledVersion, racing: list[Contestant], doing: str) -> None:
        with measuring_alone():
            run_race(base, racing, self._left, lambda turn: self._wishes.progress(doing, turn, 0))
        if base.over or (self._left is not None and 2 * base.steps > self._left):
            self.drop_base()  # The program is near its end.

    def _note(self, trial: TuneTrial, each: Contestant, base: SettledVersion) -> None:
        if each.failed:
            trial.say("rejected", f"it fails: {each.failed}")
            return
        if len(each.own_ms) < LEAST_TURNS // 2:
            trial.say("unverified", "the program has too few steps to measure it")
        trial.base_rows.append(each.base_ms)
        trial.own_rows.append(each.own_ms)
        if trial.compile_s is None:
            trial.compile_s = each.settled.compile_s
        if each.settled.memory_bytes is not None and base.memory_bytes is not None:
            trial.memory_bytes = each.settled.memory_bytes - base.memory_bytes

    def _start(self, version: Version, folder: Path) -> Stepped:
        return Stepped(self._bench, self.with_mark(version), "turns", folder)

    def _settled_base(self) -> SettledVersion:
        if self._base is not None and not self._base.over:
            return self._base
        process = self._start(Version(), self.original)
        try:
            self._base = settle(process)
        except (StepFailed, OutOfTime, KeyboardInterrupt):
            process.close()
            raise
        if self.compile_s is None:
            self.compile_s = self._base.compile_s
        return self._base

    def drop_base(self) -> None:
        """The next measurement is independent of those before."""
        if self._base is not None:
            self._base.process.close()
            self._base = None

    def settle_base(self) -> None:
        self._settled_base()

    def first_steps(self, version: Version, folder: Path, *, exact: bool) -> Stepped:
        """Run the first steps only, with eager mode's random numbers, and keep what they gave."""
        return Stepped(
            self._bench,
            self.with_mark(version),
            "exact" if exact else "turns",
            folder,
            eager_random=True,
            only_numbers=True,
        )
