"""Measures trials against the original: the original's process lives on, theirs come and go."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from compilescope.processes.deadline import OutOfTime, clock
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.workbench import Workbench
from compilescope.source.refusals import Refused
from compilescope.tune.options import TuneOptions
from compilescope.tune.race import LEAST_TURNS, Contestant, run_race
from compilescope.tune.settled import SettledVersion, settle
from compilescope.tune.stepped import NotReady, StepFailed, Stepped
from compilescope.tune.steps.place import StepPlace, marked
from compilescope.tune.trial import TOO_FEW, TuneTrial

_SETTLING = 10
"""Steps that a version takes before it is measured, about."""
_FOR_RACE = 0.2
"""Of the time of some trials: kept back from compiling, to measure those that are ready. Chosen."""
_LAST_TURN_S = 2.0
"""Before the end of its time a race begins no turn. Chosen: a turn of some versions takes less."""
_PATIENCE = 2.0
"""Times as long as the original took to be ready: what each version gets, if the budget lasts.
Chosen: most that is not autotuned compiles about as long."""


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
        self._folder = wishes.caches or Path(tempfile.mkdtemp(prefix="compilescope-tune-"))
        self.original = self.new_folder("original")
        self._base: SettledVersion | None = None
        self._started: dict[str, Stepped] = {}
        """Trials that compile already."""
        self.ready_s = 0.0
        """What the original took to be ready, with empty caches."""
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
        for process in self._started.values():
            process.close()
        if self._wishes.caches is None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def with_mark(self, version: Version) -> Version:
        text = version.text_of(self._place.file)
        if text is None:
            raise Refused(f"{self._place.file} cannot be read")
        return Version(
            {**version.files, self._place.file: marked(text, [self._place])}, version.environment
        )

    def start(self, trials: Sequence[TuneTrial]) -> None:
        """They compile while something else is waited for."""
        for trial in trials:
            with contextlib.suppress(Refused):
                self._started[trial.id] = self._start(trial.version, trial.folder)

    def compiles(self, trials: Sequence[TuneTrial]) -> bool:
        """Have they been started already?"""
        return any(trial.id in self._started for trial in trials)

    def measure(self, trials: Sequence[TuneTrial], doing: str, share: float = 1.0) -> None:
        """Each gets a row of turns, or says why not. They compile at the same time, and have this
        share of the time that is left, or what the original needed, several times."""
        self.start([trial for trial in trials if trial.id not in self._started])
        with contextlib.ExitStack() as opened:
            started = [
                (trial, opened.enter_context(self._started.pop(trial.id)))
                for trial in trials
                if trial.id in self._started
            ]
            base = self._settled_base()
            left_s = self._bench.deadline.left_s
            own_s = min(max(share * left_s, _PATIENCE * self.ready_s), left_s)
            until = clock() + (1 - _FOR_RACE) * own_s
            racing: list[tuple[TuneTrial, Contestant]] = []
            for trial, process in started:
                self._wishes.progress(f"{doing}: compiling {trial.id}", 0, 0)
                try:
                    racing.append((trial, Contestant(settle(process, until))))
                except StepFailed as failure:
                    trial.say("rejected", f"it fails: {failure}")
                except NotReady:
                    words = "its share of the time budget"
                    trial.say("unverified", f"not compiled within {own_s:.0f} s, {words}")
            names = ", ".join(trial.id for trial, _ in racing)
            self._race(base, [each for _, each in racing], f"{doing}: {names}")
            for trial, each in racing:
                self._note(trial, each, base)

    def _race(self, base: SettledVersion, racing: list[Contestant], doing: str) -> None:
        def tick(turn: int) -> None:
            self._wishes.progress(doing, turn, 0)

        with measuring_alone():
            # A turn that begins in time may still end in it.
            end = self._bench.deadline.until - _LAST_TURN_S
            run_race(base, racing, self._left, tick, end)
        if base.over or (self._left is not None and 2 * base.steps > self._left):
            self.drop_base()  # The program is near its end.

    def _note(self, trial: TuneTrial, each: Contestant, base: SettledVersion) -> None:
        if each.failed:
            trial.say("rejected", f"it fails: {each.failed}")
            return
        if len(each.own_ms) < LEAST_TURNS // 2:
            trial.say("unverified", TOO_FEW)
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
        begun = clock()
        process = self._start(Version(), self.original)
        try:
            self._base = settle(process)
        except (StepFailed, OutOfTime, KeyboardInterrupt):
            process.close()
            raise
        if self.compile_s is None:
            self.compile_s, self.ready_s = self._base.compile_s, clock() - begun
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
