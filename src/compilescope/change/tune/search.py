"""The search: find the step, try each candidate, measure twice, put winners together, prove all."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.change.fixes.subject import Program
from compilescope.change.repair.search.attempts import error_words
from compilescope.change.repair.search.options import main_file
from compilescope.change.repair.search.outcome import copy_run
from compilescope.change.repair.trials.losses import losses_of
from compilescope.change.repair.trials.recorded_runs import CapturedRun, share_of
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.tune.candidate import (
    StepFacts,
    TuneCandidate,
    TunedProgram,
    all_candidates,
    likelihood,
)
from compilescope.change.tune.candidates.fixes import FIXES, fixed_version
from compilescope.change.tune.cold_starts import ColdStarts, with_file
from compilescope.change.tune.first_run import FirstRun, FirstRunner
from compilescope.change.tune.judge import NumbersJudge, judge_first, judge_second
from compilescope.change.tune.measurement import Meter
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import (
    NO_COMPILE_TIME,
    NO_TIME,
    NOT_COMPILED,
    NOT_TRIED,
    TuneFindings,
    TuneResult,
    TuneTrial,
    originals_of,
    warm_prices,
)
from compilescope.change.tune.step_process import StepFailed, compiler_caches
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.bodies import Body
from compilescope.record.command_run import append_bodies

_FOR_WHOLE, _FOR_END = 0.3, 0.15
"""Shares of the time left: what single candidates leave to combinations once the first ones are
measured, and those to a last run of the whole program. Chosen."""
_ROOM_FOR_TWICE = 4
"""Processes that compile at the same time."""


_RANKS = "{} ranks step together: a step takes as long as on the slowest, and numbers are of all."
_TAKES = "Each takes {:.0f} s and more, as the original does. "
_NO_FLOAT64 = (
    "The first steps could not be run in float64, or drew other random numbers there: {} what is "
    "rounding."
)


def tune(
    target: Target,
    options: TuneOptions,
    candidates: Sequence[TuneCandidate] | None = None,
) -> TuneResult:
    """With all candidates, unless some are given. Raises `ToolError` where the program cannot be
    run, or has no step."""
    target.check()
    options.check()
    if target.machines != "1":
        raise ToolError(
            "All ranks must run on this machine to be tuned.",
            hint="Give torchrun --nnodes 1, or leave --nnodes out.",
        )
    deadline = options.deadline or Deadline(options.budget_s)
    with (
        options.workbench(target, deadline=deadline) as bench,
        tempfile.TemporaryDirectory(prefix="compilescope-") as caches,
    ):
        every = all_candidates() if candidates is None else candidates
        return _TuneSearch(target, options, bench, Path(caches), tuple(every)).run()


@dataclass
class _TuneSearch:
    target: Target
    options: TuneOptions
    bench: Workbench
    caches: Path
    """Of the first run."""
    candidates: tuple[TuneCandidate, ...]
    trials: list[TuneTrial] = field(default_factory=list)
    refused: list[tuple[TuneCandidate, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    best: TuneTrial | None = None
    """Proven against the original, twice."""
    after: CapturedRun | None = None
    share: float | None = None
    """Of the operators that the program runs as it is, those in graphs."""
    interrupted: bool = False
    warm_s: float = 0.0
    """What the original took to be ready with what was compiled before; 0 where it never was."""

    def run(self) -> TuneResult:
        runner = FirstRunner(self.target, self.options, self.bench, self.caches)
        first = runner.run()
        meter = Meter(self.bench, self.options, first)
        try:
            with self._keeping_what_is_proven():
                self._search(meter, first)
            return self._result(first, runner.named(first.place))
        finally:
            meter.close()

    @contextmanager
    def _keeping_what_is_proven(self) -> Iterator[None]:
        try:
            yield
        except OutOfTime:
            self.notes.append(f"The time budget of {self.options.budget_s or 0:g} s ran out.")
            self._note_untried()
        except StepFailed as failure:
            self.notes.append(f"The program failed when its step was to be measured: {failure}.")
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.append("Stopped: what was verified by then is shown.")

    # The search itself

    def _search(self, meter: Meter, first: FirstRun) -> None:
        tuned = TunedProgram(self._program(first), first.facts, first.place)
        if first.facts.ranks > 1:
            self.notes.append(_RANKS.format(first.facts.ranks))
        wanted = [c for c in self.candidates if not self.options.only or c.id in self.options.only]
        self._propose(meter, tuned, [each for each in wanted if each.id != FIXES])
        judge = NumbersJudge(meter, self.options)
        first_batch, *batches = self._batches(tuned.facts) or [[]]
        self._try_all(meter, judge, [first_batch], later=len(batches))
        with self._leaving(_FOR_WHOLE):
            self._try_all(meter, judge, batches)
            if any(each.id == FIXES for each in wanted):
                tuned = self._try_fixes(meter, judge, tuned, wanted)
            self._try_all(meter, judge, self._slow_batches())
        with self._leaving(_FOR_END):
            self._combine(meter, judge, tuned)
        self._whole_program(first.captured)
        self._look_at_placements()
        self._time_compiling(meter)
        self._time_starts(meter, judge)

    def _try_fixes(
        self, meter: Meter, judge: NumbersJudge, tuned: TunedProgram, wanted: list[TuneCandidate]
    ) -> TunedProgram:
        """After what is tried at once: a search for fixes runs the program many times."""
        tuned = fixed_version(self.target, self.options, tuned)
        known = len(self.trials)
        self._propose(meter, tuned, [each for each in wanted if each.id == FIXES])
        self._try_all(meter, judge, [self.trials[known:]])
        return tuned

    def _batches(self, facts: StepFacts) -> list[list[TuneTrial]]:
        """What compiles at the same time, the likeliest first. The original is one of the first
        batch."""
        quick = [trial for trial in self.trials if not trial.autotunes and not trial.only_starts]
        lower = self.options.lower_precision
        quick.sort(key=lambda each: likelihood(each.candidates[0], facts, lower_precision=lower))
        room = max(1, self.options.at_once // (2 if self._twice else 1) - 1)
        return [batch for batch in (quick[:room], *self._groups(quick[room:])) if batch]

    def _slow_batches(self) -> list[list[TuneTrial]]:
        """What autotunes, apart from the rest: who is quick does not wait for it."""
        return list(self._groups([trial for trial in self.trials if trial.autotunes]))

    @property
    def _twice(self) -> bool:
        """The first batch starts the processes of its second measurement too: where there is room
        for a candidate and the original, twice."""
        return self.options.at_once >= _ROOM_FOR_TWICE

    def _try_all(
        self,
        meter: Meter,
        judge: NumbersJudge,
        batches: Sequence[list[TuneTrial]],
        *,
        later: int = 0,
    ) -> None:
        """What a batch leaves of its share the later ones get."""
        batches = [batch for batch in batches if batch]
        for number, batch in enumerate(batches):
            if not judge.is_anchored:
                self._anchor(meter, judge, batch)
            if not meter.compiles(batch) and self.bench.deadline.left_s < meter.warm_s:
                raise OutOfTime  # A version is not ready by then.
            share = 1 / (len(batches) - number + later)
            meter.measure(batch, "measuring", share, meter.proof_s)
            judge_first(batch, judge)
            self._tell(trial for trial in batch if not trial.promising)
            self._second(meter, [trial for trial in batch if trial.promising])

    def _anchor(self, meter: Meter, judge: NumbersJudge, batch: list[TuneTrial]) -> None:
        if self.options.at_once > 1:
            meter.start(batch, twice=self._twice)  # The original compiles beside them.
        try:
            judge.anchor()
        except StepFailed as failure:
            raise ToolError(f"The step cannot be measured: {failure}.") from None
        self.warm_s = meter.warm_s
        if not judge.knows_float64:
            self.notes.append(_NO_FLOAT64.format(judge.teller))

    def _tell(self, trials: Iterable[TuneTrial]) -> None:
        for trial in trials:
            self.options.tell(f"{trial.id}: {trial.verdict}: {trial.reason}")

    def _note_untried(self) -> None:
        untried = [trial for trial in self.trials if trial.reason == NOT_TRIED]
        for trial in untried:
            trial.say("unverified", NO_TIME)
        if untried:
            names = ", ".join(trial.id for trial in untried)
            takes = "" if not self.warm_s else _TAKES.format(self.warm_s)
            self.notes.append(f"Not tried for lack of time: {names}. {takes}Raise --budget.")

    @contextmanager
    def _leaving(self, share: float) -> Iterator[None]:
        """The block ends when so much of its time is left, and the search goes on without it."""
        left = self.bench.deadline.left_s
        reserve = share * left if left < math.inf else 0.0
        try:
            with self.bench.deadline.leaving(lambda: reserve):
                yield
        except OutOfTime:
            if self.bench.deadline.is_over:
                raise
            self.notes.append(f"The time budget of {self.options.budget_s or 0:g} s was short.")
            self._note_untried()

    def _groups(self, trials: list[TuneTrial]) -> Iterator[list[TuneTrial]]:
        """As many as compile at the same time."""
        for start in range(0, len(trials), self.options.at_once):
            yield trials[start : start + self.options.at_once]

    def _program(self, first: FirstRun) -> Program:
        captured = first.captured
        return Program(captured.run, captured.digest, main_file(self.target), {})

    def _propose(self, meter: Meter, tuned: TunedProgram, wanted: list[TuneCandidate]) -> None:
        for candidate in wanted:
            try:
                version = Version().with_patch(candidate.propose(tuned))
                meter.with_mark(version)
            except Refused as reason:
                self.refused.append((candidate, str(reason)))
                continue
            folder = meter.new_folder(candidate.id, empty=candidate.only_starts)
            trial = TuneTrial((candidate,), version, folder)
            if trial.only_starts:
                trial.version = with_file(version, folder)
                trial.say("unverified", NOT_COMPILED)
            self.trials.append(trial)

    def _second(self, meter: Meter, promising: list[TuneTrial]) -> None:
        """Fresh processes on both sides: an independent measurement."""
        if not promising:
            meter.drop_spares()
            return
        meter.measure_again(promising)
        for trial in promising:
            judge_second(trial)
        self._tell(promising)
        self.best = next(iter(self._winners()), None)

    def _winners(self) -> list[TuneTrial]:
        allowed = {"verified", "apart"} if self.options.lower_precision else {"verified"}
        found = [t for t in self.trials if t.verdict in allowed and not t.for_compile_time]
        return sorted(found, key=lambda trial: trial.value, reverse=True)

    # All of it

    def _combine(self, meter: Meter, judge: NumbersJudge, tuned: TunedProgram) -> None:
        """The best with the others that go with it: all at once, else one after the other."""
        winners = self._winners()
        chosen: list[TuneTrial] = []
        for trial in winners:
            groups = {t.candidates[0].group for t in chosen} - {""}
            if trial.candidates[0].group not in groups:
                chosen.append(trial)
        if len(chosen) < 2:
            return
        whole = self._joined(meter, tuned, chosen)
        if whole is not None and self._prove(meter, judge, whole):
            self.best = whole
            return
        if len(chosen) == 2:
            return
        kept = [chosen[0]]
        for trial in chosen[1:]:
            joined = self._joined(meter, tuned, [*kept, trial])
            if joined is not None and self._prove(meter, judge, joined):
                kept.append(trial)
                self.best = joined

    def _joined(
        self, meter: Meter, tuned: TunedProgram, trials: list[TuneTrial]
    ) -> TuneTrial | None:
        """Each is proposed on top of those before it."""
        version = Version()
        candidates: list[TuneCandidate] = []
        for trial in sorted(trials, key=lambda each: each.candidates[0].order):
            program = replace(tuned.program, files=dict(version.files), _modules={}, _own=[])
            on_top = TunedProgram(program, tuned.facts, tuned.place, tuned.fixed)
            with suppress(Refused):
                version = version.with_patch(trial.candidates[0].propose(on_top))
                candidates.append(trial.candidates[0])
        if len(candidates) < 2:
            return None
        folder = meter.new_folder("-".join(each.id for each in candidates))
        return TuneTrial(tuple(candidates), version, folder)

    def _prove(self, meter: Meter, judge: NumbersJudge, whole: TuneTrial) -> bool:
        """Faster than the original twice, the same numbers, and faster than the best so far."""
        assert self.best is not None
        meter.drop_base()
        meter.start([whole], twice=self._twice)
        meter.measure([whole], "combining")
        judge_first([whole], judge)
        if not whole.promising or whole.value <= self.best.value:
            meter.drop_spares()
            return False
        meter.measure_again([whole])
        judge_second(whole)
        return whole.is_offered

    def _whole_program(self, first: CapturedRun) -> None:
        """It must also come to its end, as the original does."""
        if self.best is None:
            return
        self.options.progress("running the whole program", 0, 0)
        try:
            caches = compiler_caches(self.best.folder)
            self.after = self.bench.watch(self.best.version, fresh=True, environment=caches)
        except OutOfTime:
            self.notes.append("The time budget ended before the whole program had run once more.")
            return
        if self.after.timed_out or self.after.exit_status != first.exit_status:
            self.best.say("rejected", f"the whole program fails with it: {error_words(self.after)}")
            self.best = None

    def _look_at_placements(self) -> None:
        """Each runs once under capture: what it loses, and how much of it is compiled."""
        measured = [trial for trial in self.trials if trial.placement and trial.own_rows]
        if not measured:
            return
        self.options.progress("looking at placements", 0, 0)
        with suppress(OutOfTime):
            every = self.bench.weigh(Version(), "all")
            self.share = share_of(self.bench.weigh(Version(), "graphs"), every)
            for trial in measured:
                seen = self.bench.watch(trial.version, fresh=True)
                if not seen.timed_out:
                    trial.losses = losses_of(seen.digest, seen.operators)
                    trial.share = share_of(self.bench.weigh(trial.version, "graphs"), every)

    def _time_compiling(self, meter: Meter) -> None:
        """Of what is offered, and of placements, which began with what the first run had compiled.
        The best first."""
        best = [self.best] if self.best is not None else []
        told = [t for t in self.trials if t.placement and t.own_rows and not t.for_compile_time]
        offered = best + [t for t in self.trials if t.is_offered and t not in best]
        every = offered + [t for t in told if t not in offered]
        try:
            for group in self._groups(every):
                meter.time_compiling(group)
        except OutOfTime:
            self.notes += [NO_COMPILE_TIME, *warm_prices(offered)]

    def _time_starts(self, meter: Meter, judge: NumbersJudge) -> None:
        """Of what is meant for compile time."""
        wanted = [trial for trial in self.trials if trial.reason == NOT_COMPILED]
        try:
            if wanted and not judge.is_anchored:
                self._anchor(meter, judge, [])
            ColdStarts(meter, self.bench, self.options).judge(wanted, judge)
        except OutOfTime:
            self.notes += [NO_COMPILE_TIME] if NO_COMPILE_TIME not in self.notes else []
        self._tell(wanted)

    # What is told

    def _result(self, first: FirstRun, step: str) -> TuneResult:
        captured = first.captured
        found = TuneFindings(
            root=self.target.root,
            step=step,
            device=first.facts.device_name,
            trials=self.trials,
            refused=self.refused,
            best=self.best,
            notes=tuple(self.notes),
            before=losses_of(captured.digest, captured.operators),
            share=self.share,
        )
        attempts, outcome = tuple(found.attempts()), found.outcome()
        run = ""
        if self.options.home is not None:
            kept = _keep_tuning(captured.folder, self.options.home, [*attempts, outcome])
            run = kept.name if kept is not None else ""
        return TuneResult(
            outcome=outcome,
            attempts=attempts,
            files=found.files,
            originals=originals_of(found.files),
            environment=outcome.environment,
            main=main_file(self.target),
            run=run,
            interrupted=self.interrupted,
            before=losses_of(captured.digest, captured.operators),
            after=losses_of(self.after.digest, self.after.operators) if self.after else None,
            first=first,
            kept=self.best.candidates if self.best is not None else (),
        )


def _keep_tuning(folder: Path, home: Path, bodies: Sequence[Body]) -> Path | None:
    """Copy the run to the user's own; None where that cannot be written."""
    return copy_run(folder, home, lambda part: append_bodies(part, bodies))
