"""Measures trials against the original: the original's process lives on, theirs come and go.

All begin with what the program's first run has compiled. What compiling takes is measured apart,
with empty caches.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from compilescope.base.processes.deadline import OutOfTime, clock
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.tune.first_run import FirstRun
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import TOO_FEW, OtherProgram, TuneTrial
from compilescope.change.tune.step_place import marked
from compilescope.change.tune.step_process import (
    LEAST_TURNS,
    Contestant,
    NotReady,
    SettledVersion,
    StepFailed,
    StepProcess,
    run_race,
    settle,
)
from compilescope.knowledge.source.refusals import Refused

_SETTLING = 10
"""Steps that a version takes before it is measured, about."""
_FOR_RACE = 0.2
"""Of the time of some trials: kept back from compiling, to measure those that are ready. Chosen."""
_LAST_TURN_S = 2.0
"""Before the end of its time a race begins no turn. Chosen: a turn of some versions takes less."""
_PROOF = 1.5
"""Times as long as the original took to be ready: what a second measurement takes. Chosen: as many
processes start at once, and then some turns are measured."""
_LEAST = 0.5
"""Of the time left, whatever the reserve. Chosen."""
_ORIGINAL = ""
"""In place of a trial's id."""
_PATIENCE = 2.0
"""Times as long as the original took to be ready: what each version gets, if the budget lasts.
Chosen: most that is not autotuned compiles about as long."""


def copy_caches(source: Path, folder: Path) -> None:
    """Files of compilers' caches are never written twice, so a link will do."""

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)

    # A cache that is being written, or that nobody may read, is one with less in it.
    with contextlib.suppress(OSError, shutil.Error):
        left_out = shutil.ignore_patterns("locks", "*.lock")
        shutil.copytree(source, folder, copy_function=link, ignore=left_out, dirs_exist_ok=True)


def _compiled_in(process: StepProcess) -> float | None:
    """None where it fails, which it did not before."""
    with contextlib.suppress(StepFailed):
        return settle(process).compile_s
    return None


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

    def __init__(self, bench: Workbench, options: TuneOptions, first: FirstRun) -> None:
        self._bench = bench
        self._options = options
        self._place = first.place
        self._left = None if first.steps is None else max(1, first.steps - _SETTLING)
        self._folder = options.caches or Path(tempfile.mkdtemp(prefix="compilescope-tune-"))
        self._compiled = first.caches
        self._folders = 0
        self.original = self.new_folder("original")
        self._base: SettledVersion | None = None
        self._started: dict[str, StepProcess] = {}
        """Trials that compile already."""
        self._unsettled: dict[str, StepProcess] = {}
        self._spare: dict[str, SettledVersion] = {}
        """For second measurements, by the trial's id."""
        self._ready: dict[str, SettledVersion] = {}
        """For the next measurement."""
        self.warm_s = 0.0
        """What the original took to be ready with what was compiled before."""
        self.ready_s = first.captured.seconds
        """What the original took with empty caches: a version is not ready much sooner."""

    def new_folder(self, name: str, *, empty: bool = False) -> Path:
        """With what the first run compiled, unless it is to be empty."""
        self._folders += 1
        folder = self._folder / f"{self._folders}-{name[:60]}"
        folder.mkdir()
        if not empty:
            copy_caches(self._compiled, folder)
        return folder

    def close(self) -> None:
        self.drop_base()
        self.drop_spares()
        for process in (*self._started.values(), *self._unsettled.values()):
            process.close()
        for settled in self._ready.values():
            settled.process.close()
        if self._options.caches is None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def with_mark(self, version: Version, program: OtherProgram | None = None) -> Version:
        place = program.place if program is not None else self._place
        text = version.text_of(place.file)
        if text is None:
            raise Refused(f"{place.file} cannot be read")
        return Version({**version.files, place.file: marked(text, [place])}, version.environment)

    def start(self, trials: Sequence[TuneTrial], *, twice: bool = False) -> None:
        """They compile while something else is waited for. `twice`: the processes of the second
        measurement too, and the original's for it."""
        for trial in trials:
            with contextlib.suppress(Refused):
                self._started[trial.id] = self._start(trial.version, trial.folder, trial.program)
                if twice:
                    folder = self.new_folder(f"{trial.id}-again")
                    self._unsettled[trial.id] = self._start(trial.version, folder)
        if twice:
            self._unsettled[_ORIGINAL] = self._start(Version(), self.new_folder("original-again"))

    def compiles(self, trials: Sequence[TuneTrial]) -> bool:
        """Have they been started already?"""
        return any(trial.id in self._started for trial in trials)

    @property
    def proof_s(self) -> float:
        """About what a second measurement takes, up to its first turns."""
        return 0.0 if self._unsettled else _PROOF * self.warm_s

    def measure(
        self, trials: Sequence[TuneTrial], doing: str, share: float = 1.0, reserve_s: float = 0.0
    ) -> None:
        """Each gets a row of turns, or says why not. They compile at the same time, and have this
        share of the time that is left, or what the original needed, several times, but for a
        reserve."""
        known = {*self._started, *self._ready}
        self.start([trial for trial in trials if trial.id not in known])
        with contextlib.ExitStack() as opened:
            started = [
                (trial, opened.enter_context(self._started.pop(trial.id)))
                for trial in trials
                if trial.id in self._started
            ]
            racing: list[tuple[TuneTrial, Contestant]] = []
            for trial in trials:
                if trial.id in self._ready:
                    settled = self._ready.pop(trial.id)
                    opened.enter_context(settled.process)
                    racing.append((trial, Contestant(settled)))
            base = self._settled_base()
            left_s = self._bench.deadline.left_s
            own_s = min(max(share * left_s, _PATIENCE * self.ready_s), left_s)
            if own_s > left_s - reserve_s:
                own_s = max(left_s - reserve_s, _LEAST * left_s)
            until = clock() + (1 - _FOR_RACE) * own_s
            for trial, process in started:
                self._options.progress(f"{doing}: compiling {trial.id}", 0, 0)
                try:
                    racing.append((trial, Contestant(settle(process, until))))
                except StepFailed as failure:
                    trial.say("rejected", f"it fails: {failure}")
                except NotReady:
                    trial.say_not_ready(clock() - process.begun, self.ready_s)
            self._settle_unsettled(until)
            names = ", ".join(trial.id for trial, _ in racing)
            self._race(base, [each for _, each in racing], f"{doing}: {names}")
            for trial, each in racing:
                self._note(trial, each, base)

    def measure_again(self, trials: Sequence[TuneTrial]) -> None:
        """With fresh processes on both sides: those that were started for it, or new ones."""
        self.drop_base()
        self._base = self._spare.pop(_ORIGINAL, None)
        for trial in trials:
            if trial.id in self._spare:
                self._ready[trial.id] = self._spare.pop(trial.id)
        self.drop_spares()
        self.measure(trials, "measuring again")

    def drop_spares(self) -> None:
        for settled in self._spare.values():
            settled.process.close()
        self._spare.clear()

    def _settle_unsettled(self, until: float) -> None:
        """Nothing else compiles while steps are timed."""
        while self._unsettled:
            name, process = self._unsettled.popitem()
            try:
                self._spare[name] = settle(process, until)
            except (StepFailed, NotReady):
                process.close()

    def _race(self, base: SettledVersion, racing: list[Contestant], doing: str) -> None:
        def tick(turn: int) -> None:
            self._options.progress(doing, turn, 0)

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
        trial.warm_compile_s = each.settled.compile_s, base.compile_s
        trial.base_rows.append(each.base_ms)
        trial.own_rows.append(each.own_ms)
        if each.settled.memory_bytes is not None and base.memory_bytes is not None:
            trial.memory_bytes = each.settled.memory_bytes - base.memory_bytes
            trial.peak_bytes = each.settled.memory_bytes

    def _start(
        self, version: Version, folder: Path, program: OtherProgram | None = None
    ) -> StepProcess:
        bench = program.bench if program is not None else self._bench
        return StepProcess(bench, self.with_mark(version, program), "turns", folder)

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
        self.warm_s = clock() - begun
        return self._base

    def drop_base(self) -> None:
        """The next measurement is independent of those before."""
        if self._base is not None:
            self._base.process.close()
            self._base = None

    def settle_base(self) -> None:
        self._settled_base()

    def time_compiling(self, trials: Sequence[TuneTrial]) -> None:
        """With empty caches, the original at the same time: what makes one slower makes all."""
        self.drop_base()
        names = ", ".join(trial.id for trial in trials)
        self._options.progress(f"compiling with empty caches: {names}", 0, 0)
        with contextlib.ExitStack() as opened:
            versions = [Version(), *(trial.version for trial in trials)]
            started = [
                opened.enter_context(self._start(version, self.new_folder("empty", empty=True)))
                for version in versions
            ]
            base_s, *own_s = [_compiled_in(process) for process in started]
            for trial, seconds in zip(trials, own_s, strict=True):
                if base_s is not None and seconds is not None:
                    trial.compile_s, trial.base_compile_s = seconds, base_s

    def cold_start(self, version: Version, kept: Path | None = None) -> float:
        """Seconds that one start compiles with empty caches, with nothing else beside it. Raises
        `StepFailed`. `kept`: an empty folder that stays, with what its first steps computed."""
        folder = kept or self.new_folder("start", empty=True)
        try:
            with self._start(version, folder) as process:
                return settle(process).compile_s
        finally:
            if kept is None:
                shutil.rmtree(folder, ignore_errors=True)

    def first_steps(
        self,
        version: Version,
        folder: Path,
        *,
        way: Literal["compiled", "eager", "float64"] = "compiled",
        program: OtherProgram | None = None,
    ) -> StepProcess:
        """Run the first steps only, with eager mode's random numbers, and keep what they gave."""
        return StepProcess(
            program.bench if program is not None else self._bench,
            self.with_mark(version, program),
            "turns" if way == "compiled" else "exact",
            folder,
            eager_random=True,
            only_numbers=True,
            widens=way == "float64",
        )
