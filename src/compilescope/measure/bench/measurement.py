"""Measures one model on its backends: processes that take turns, in several sets; and the figures
that are made of what was measured.

A set has a process for each backend. They compile one after the other, and then every round takes
one run of each, in an order that rotates: what disturbs the machine disturbs all of them alike.
The first set starts with empty caches on disk, the later ones find them full.

It is written as a run while it is measured: nothing is lost when it stops.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil

from compilescope.base.processes.deadline import clock, pauses
from compilescope.knowledge.analysis.benchmarks import without_noise
from compilescope.knowledge.analysis.intervals import Ratio, Summary, ratio, summarize
from compilescope.measure.bench.memory_room import examined_at_once, fitting
from compilescope.measure.bench.protocol import (
    EAGER,
    BuiltReply,
    Examination,
    FirstCall,
    PeakMemory,
    RunTime,
    Spec,
    Verb,
    WarmUp,
)
from compilescope.measure.bench.worker_process import WorkerFailed, WorkerProcess
from compilescope.record.benchmark import Benchmark, Interval, Machine, too_wide
from compilescope.record.bodies import Body, Violation
from compilescope.record.command_run import CommandRun
from compilescope.record.stack import Frame


class BenchRun(CommandRun):
    """The run of one `compilescope bench`."""

    def __init__(self, home: Path, label: str, command: tuple[str, ...], machine: Machine) -> None:
        device = "cuda" if machine.accelerators else "cpu"
        super().__init__(home, f"bench-{label}", command, torch=machine.torch, device=device)
        self.write(machine)


T = TypeVar("T")
Stack = tuple[Frame, ...]
_BUSY_PERCENT = 20.0
"""Of all cores, by others, before we begin: from here on a note says so. Chosen, not measured."""
_LOOK_S = 0.3
"""How long that is looked at. Chosen: psutil advises at least 0.1 s."""


@dataclass(frozen=True)
class BenchStep:
    """What is being done now."""

    model: str
    backend: str
    doing: str
    done: int
    total: int
    """Of all steps of this model."""


@dataclass(frozen=True)
class Method:
    """How every model and backend of a benchmark is measured."""

    processes: int = 3
    examine: bool = True
    limit_s: float = 600.0
    """For one answer of a process."""
    longer_s: float = 0.0
    """For more sets of processes where the figures are too noisy to tell."""


class ModelBench:
    """One model on several backends. What it has measured can be read at any moment."""

    def __init__(
        self, specs: Sequence[Spec], method: Method, heard: Callable[[BenchStep], None]
    ) -> None:
        """One spec is eager mode's, which comes first."""
        self._base_spec = next(spec for spec in specs if spec.backend == EAGER)
        self._waiting = [spec for spec in specs if spec.backend != EAGER]
        self._method = method
        self._heard = heard
        self._folder = Path(tempfile.mkdtemp(prefix="compilescope-bench-"))
        self._groups: list[list[Track]] = []
        """Each begins with eager mode."""
        self._busy = ""
        self._done = 0
        examined = len(self._waiting) if method.examine else 0
        runs = self._base_spec.runs + 3
        self._total = len(specs) * (method.processes * runs + 1) + examined

    def __enter__(self) -> ModelBench:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def benchmarks(self, *, stopped: bool = False) -> list[Benchmark]:
        """Eager mode once, whatever the number of groups."""
        if not self._groups:
            return []
        found = [benchmark(self._groups[0][0], None, stopped=stopped)]
        for base, *others in self._groups:
            # Each group was measured beside an eager mode of its own.
            beside = [benchmark(track, base, stopped=stopped) for track in others]
            found += without_noise([benchmark(base, None, stopped=stopped), *beside])[1:]
        return [*without_noise(found[:1]), *found[1:]]

    def bodies(self) -> Iterator[tuple[Body, Stack]]:
        """What examining found, and where."""
        tracks = (track for group in self._groups for track in group)
        return found_once([track.seen for track in tracks if track.seen is not None])

    def measure(self) -> None:
        self._busy = _busy_words()
        while self._waiting or not self._groups:
            self._measure_group()
        if len(self._groups) > 1:
            self._note_groups()

    def _measure_group(self) -> None:
        group = [self._track(self._base_spec)]
        self._groups.append(group)
        number, longer_s, last_s = 0, 0.0, 0.0
        planned = self._method.processes
        while number < planned or (
            # One more set takes as long as the last one did.
            longer_s + last_s <= self._method.longer_s and too_noisy(group)
        ):
            begun = clock()
            with contextlib.ExitStack() as processes:
                self._measure_set(group, number, processes)
            if group[0].error:
                return
            if group[0].dropped:
                break
            last_s = clock() - begun
            longer_s += last_s if number >= planned else 0.0
            number += 1
        if self._method.examine:
            self._examine([track for track in group[1:] if not track.error])

    def _track(self, spec: Spec) -> Track:
        track = Track(spec, planned=spec.runs * self._method.processes)
        if self._busy:
            track.notes.append(self._busy)
        return track

    def _measure_set(
        self, group: list[Track], number: int, processes: contextlib.ExitStack
    ) -> None:
        base = group[0]
        known = [track for track in group if not track.dropped]
        if number >= self._method.processes:
            self._total += len(known) * (self._base_spec.runs + 3)
        live: list[tuple[Track, WorkerProcess]] = []
        for track, worker in self._built(known, number, processes):
            called = self._compiled(track, worker, number)
            if called is None:
                continue
            live.append((track, worker))
            if number == 0:
                # How many fit beside eager mode is known now.
                room = fitting(called, self._base_spec.mode)
                taken, self._waiting = self._waiting[:room], self._waiting[room:]
                group += [self._track(spec) for spec in taken]
        if base.error:
            self._give_up(group)
        if base.dropped:
            return
        if number == 0:
            for track, worker in self._built(group[1:], number, processes):
                if self._compiled(track, worker, number) is not None:
                    live.append((track, worker))
        self._rounds(live, number)
        if number == self._method.processes - 1:
            for track, worker in live:
                peak = self._ask(track, worker, "memory", PeakMemory, "peak memory")
                track.peak = None if peak is None else peak.bytes

    def _give_up(self, group: list[Track]) -> None:
        """Without eager mode there is nothing to compare with, and no model that works."""
        base = group[0]
        group += [self._track(spec) for spec in self._waiting]
        self._waiting = []
        for track in group[1:]:
            track.error = f"Not measured, because eager mode failed: {base.error}"

    def _built(
        self, tracks: list[Track], number: int, processes: contextlib.ExitStack
    ) -> list[tuple[Track, WorkerProcess]]:
        """A process for each that has built its model. They build at the same time, since that is
        not measured; when this returns all of them are idle."""
        which = f"building, {self._which(number)}"
        workers = []
        for track in tracks:
            place = self._folder / f"{len(self._groups)}-{_plain(track.backend)}"
            place.mkdir(exist_ok=True)
            worker = WorkerProcess(place / "caches", place / f"log-{number}", self._method.limit_s)
            workers.append((track, processes.enter_context(worker)))
            worker.send("prepare", track.spec)
        live = []
        for track, worker in workers:
            ready = self._hear(track, worker, "prepare", BuiltReply, which)
            if ready is not None:
                track.parameters, track.batch = ready.parameters, ready.batch
                live.append((track, worker))
        return live

    def _compiled(self, track: Track, worker: WorkerProcess, number: int) -> FirstCall | None:
        """After it the process is compiled and warm; None where it failed."""
        which = self._which(number)
        doing = "first call" if track.backend == EAGER else _compiling(number)
        called = self._ask(track, worker, "first", FirstCall, f"{doing}, {which}")
        if called is None:
            return None
        warmed = self._ask(track, worker, "warm", WarmUp, f"warming up, {which}")
        if warmed is None:
            return None
        track.calls = warmed.calls if number == 0 else track.calls
        track.firsts.append(called.seconds)
        track.rows.append([])
        return called

    def _rounds(self, live: list[tuple[Track, WorkerProcess]], number: int) -> None:
        which = self._which(number)
        runs = self._base_spec.runs
        for turn in range(runs):
            # Those that failed have left; the others keep their rounds.
            for track, worker in rotated(live, turn):
                doing = f"run {turn + 1} of {runs}, {which}"
                ran = self._ask(track, worker, "run", RunTime, doing)
                if ran is None:
                    live.remove((track, worker))
                else:
                    track.rows[-1].append(ran.ms)

    def _which(self, number: int) -> str:
        if number >= self._method.processes:
            return f"process {number + 1}, as the figures are too noisy so far"
        return f"process {number + 1} of {self._method.processes}"

    def _examine(self, tracks: list[Track]) -> None:
        """As many at a time as there are cores and memory for: nothing is timed here."""
        while tracks:
            at_once = examined_at_once(tracks[0].parameters or 0, self._base_spec)
            now, tracks = tracks[:at_once], tracks[at_once:]
            with contextlib.ExitStack() as processes:
                workers = [self._examiner(track, processes) for track in now]
                for track, worker in zip(now, workers, strict=True):
                    track.seen = self._hear(track, worker, "examine", Examination, "examining")

    def _examiner(self, track: Track, processes: contextlib.ExitStack) -> WorkerProcess:
        place = self._folder / f"{len(self._groups)}-{_plain(track.backend)}"
        worker = WorkerProcess(place / "caches", place / "log-examine", self._method.limit_s)
        processes.enter_context(worker)
        worker.send("examine", track.spec)
        return worker

    def _ask(
        self,
        track: Track,
        worker: WorkerProcess,
        verb: Verb,
        answer: type[T],
        doing: str,
        *specs: Spec,
    ) -> T | None:
        worker.send(verb, *specs)
        return self._hear(track, worker, verb, answer, doing)

    def _hear(
        self, track: Track, worker: WorkerProcess, verb: Verb, answer: type[T], doing: str
    ) -> T | None:
        """None where the process failed: the track knows why, and the others carry on."""
        self._heard(BenchStep(track.spec.model, track.backend, doing, self._done, self._total))
        self._done += 1
        stopped = pauses()
        try:
            said = worker.hear(verb, answer)
            while verb == "run" and pauses() != stopped:
                # Ctrl-Z came into it: nobody knows to the millisecond how long it took.
                stopped = pauses()
                said = worker.ask(verb, answer)
            return said
        except WorkerFailed as failure:
            worker.end(patience_s=0.0)
            self._failed(track, verb, f"{failure.sentence} {failure.hint}".rstrip())
            return None

    def _failed(self, track: Track, verb: Verb, sentence: str) -> None:
        if verb == "memory":
            track.notes.append(f"Peak memory was not measured: {sentence}")
            return
        if verb == "examine":
            track.notes.append(f"Graphs and numbers were not examined: {sentence}")
            return
        track.dropped = True
        whole = len(track.rows) - (verb == "run")
        if whole:
            which = f"Process {whole + 1} of {max(whole + 1, self._method.processes)}"
            track.notes.append(f"{which} failed: {sentence}")
        else:
            track.error = sentence
            track.rows, track.firsts = [], []

    def _note_groups(self) -> None:
        words = (
            f"The backends were measured in {len(self._groups)} groups, each with eager mode: "
            "there is not enough memory for all of them at once."
        )
        for group in self._groups:
            for track in group:
                track.notes.append(words)


def found_once(seen: Sequence[Examination]) -> Iterator[tuple[Body, Stack]]:
    """Backends are handed the same graphs: a violation is one, however many of them met it."""
    violations: Counter[tuple[Body, Stack]] = Counter()
    for each in seen:
        found = list(zip(each.bodies, each.stacks, strict=True))
        violations |= Counter(one for one in found if isinstance(one[0], Violation))
        yield from (one for one in found if not isinstance(one[0], Violation))
    yield from violations.elements()


def rotated(every: Sequence[T], turn: int) -> list[T]:
    """Each comes first in its turn: what is gained or lost by a place is shared by all."""
    at = turn % len(every) if every else 0
    return [*every[at:], *every[:at]]


def _compiling(number: int) -> str:
    return "compiling, cold" if number == 0 else "compiling, warm"


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)[-60:]


def _busy_words() -> str:
    """What other programs do to this machine."""
    share = psutil.cpu_percent(interval=_LOOK_S)
    if share < _BUSY_PERCENT:
        return ""
    return f"Other programs used {share:.0f} % of the CPU when this model's benchmark started."


_NOISY = 0.2
"""An interval wider than this share of the median deserves a word. Chosen: a backend that is a
fifth faster would not show. docs/guides/bench.md says it to users."""


@dataclass
class Track:
    """A backend's raw figures; it grows as they are measured."""

    spec: Spec
    planned: int
    """Runs in all processes together."""
    parameters: int | None = None
    batch: int | None = None
    calls: int = 1
    firsts: list[float] = field(default_factory=list)
    """Seconds of the first call, for each process that has a row."""
    rows: list[list[float]] = field(default_factory=list)
    peak: int | None = None
    seen: Examination | None = None
    error: str = ""
    dropped: bool = False
    """A process of it failed: no other is started."""
    notes: list[str] = field(default_factory=list)

    @property
    def backend(self) -> str:
        return self.spec.backend

    @property
    def runs(self) -> list[list[float]]:
        return [row for row in self.rows if row]

    @property
    def done(self) -> int:
        return sum(map(len, self.rows))


def too_noisy(group: Sequence[Track]) -> bool:
    """Whether some figure of the group, whose first is eager mode, is lost in the noise."""
    rows = [benchmark(track, group[0] if at else None) for at, track in enumerate(group)]
    return any(row.too_noisy for row in without_noise(rows))


def benchmark(track: Track, base: Track | None, *, stopped: bool = False) -> Benchmark:
    """`base` is eager mode, measured in the same rounds."""
    spec = track.spec
    found = summarize(track.runs)
    seen = track.seen or Examination()
    error = track.error
    if found is None and not error:
        error = "Stopped before it was measured." if stopped else "Nothing was measured."
    quotient = _speedup(track, base)
    compiled = track.backend != EAGER
    batch = track.batch or (base.batch if base is not None else None) or spec.batch or 1
    return Benchmark(
        model=spec.model,
        backend=track.backend,
        mode=spec.mode,
        device=spec.device,
        dtype=spec.dtype,
        batch=batch,
        small=spec.small,
        compile_mode=spec.compile_mode,
        parameters=track.parameters if base is None else track.parameters or base.parameters,
        compile_seconds=_compile_seconds(track, cold=True) if compiled else None,
        warm_compile_seconds=_compile_seconds(track, cold=False) if compiled else None,
        runs_ms=tuple(tuple(row) for row in track.runs),
        calls=track.calls,
        latency_ms=found.median if found else None,
        latency_mean_ms=found.mean if found else None,
        latency_std_ms=found.std if found else None,
        latency_p90_ms=found.p90 if found else None,
        latency_ci_ms=found.ci if found else None,
        outliers=found.outliers if found else 0,
        throughput=1000 * batch / found.median if found else None,
        peak_bytes=track.peak,
        graphs=seen.graphs,
        breaks=seen.breaks,
        recompiles=seen.recompiles,
        violations=seen.violations,
        constraints=spec.constraints,
        kerneldiff=seen.kerneldiff,
        speedup=quotient.value if quotient else None,
        speedup_ci=_interval(quotient),
        error=error,
        notes=tuple(dict.fromkeys([*_notes(track, found, stopped), *track.notes, *seen.notes])),
    )


def _speedup(track: Track, base: Track | None) -> Ratio | None:
    if track.backend == EAGER:
        return Ratio(1.0, 1.0, 1.0) if track.runs else None
    return None if base is None else ratio(base.rows, track.rows, paired=True)


def _interval(quotient: Ratio | None) -> Interval | None:
    if quotient is None or quotient.low is None or quotient.high is None:
        return None
    return quotient.low, quotient.high


def _compile_seconds(track: Track, *, cold: bool) -> float | None:
    """The first call beyond a usual one: of the first process, or the median of the later ones."""
    both = list(zip(track.firsts, track.rows, strict=False))
    beyond = [
        max(0.0, first - statistics.median(row) / 1000)
        for first, row in (both[:1] if cold else both[1:])
        if row
    ]
    return statistics.median(beyond) if beyond else None


def _notes(track: Track, found: Summary | None, stopped: bool) -> list[str]:
    notes = []
    if stopped and found is not None and track.done < track.planned:
        notes.append(f"Stopped early: {track.done} of {track.planned} runs.")
    if found is not None and found.ci is not None:
        low, high = found.ci
        if too_wide(found.median, found.ci):
            notes.append("Too noisy to tell: the interval is wider than the median.")
        elif high - low > _NOISY * found.median:
            notes.append("Noisy: the interval is wider than 20 % of the median.")
    planned = track.planned // max(1, track.spec.runs)
    if planned and len(track.runs) > planned:
        notes.append(
            f"Measured longer, in {len(track.runs)} processes instead of {planned}, because the "
            "figures were too noisy."
        )
    return notes
