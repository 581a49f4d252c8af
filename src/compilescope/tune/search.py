"""The search: find the step, try each candidate, measure twice, put winners together, prove all."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from compilescope.errors import ToolError
from compilescope.fixes.subject import Program
from compilescope.processes.deadline import Deadline, OutOfTime
from compilescope.recorder.target import Target
from compilescope.repair.search.places import main_file
from compilescope.repair.search.steps import error_words
from compilescope.repair.trials.losses import losses_of
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import CapturedRun
from compilescope.repair.trials.workbench import Workbench
from compilescope.source.refusals import Refused
from compilescope.tune.candidate import StepFacts, TuneCandidate, TunedProgram
from compilescope.tune.catalogue import all_candidates
from compilescope.tune.fixed import fixed_version
from compilescope.tune.judge import NumbersJudge, judge_first, judge_second
from compilescope.tune.measurement import Meter
from compilescope.tune.options import TuneOptions
from compilescope.tune.outcome import Findings, TuneResult, originals_of
from compilescope.tune.stepped import StepFailed, Stepped, compiler_caches
from compilescope.tune.steps.place import MARK, StepPlace, marked
from compilescope.tune.steps.search import ENOUGH, choose, possible_steps
from compilescope.tune.stored import keep_tuning
from compilescope.tune.trial import NO_TIME, NOT_TRIED, TuneTrial

_COUNTING_S = 5.0
"""After the last compilation, steps are counted for so long. Chosen: an inner loop is told from an
outer one by then."""
_FOR_PROOF, _FOR_WHOLE, _FOR_END = 0.4, 0.5, 0.15
"""Shares of the time left: what the first measurements leave to the second ones, those to
combinations, and those to a last run of the whole program. Chosen."""


def tune(
    target: Target,
    wishes: TuneOptions,
    candidates: Sequence[TuneCandidate] | None = None,
) -> TuneResult:
    """With all candidates, unless some are given. Raises `ToolError` where the program cannot be
    run, or has no step."""
    target.check()
    wishes.check()
    deadline = wishes.deadline or Deadline(wishes.budget_s)
    with (
        Workbench(
            target,
            compile_names=wishes.compile_names,
            backend=wishes.backend,
            limit_s=wishes.limit_s,
            stdin=wishes.stdin,
            seed=wishes.seed,
            deadline=deadline,
        ) as bench,
        tempfile.TemporaryDirectory(prefix="compilescope-") as caches,
    ):
        every = all_candidates() if candidates is None else candidates
        return _TuneSearch(target, wishes, bench, Path(caches), tuple(every)).run()


@dataclass
class _TuneSearch:
    target: Target
    wishes: TuneOptions
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
    interrupted: bool = False

    def run(self) -> TuneResult:
        first = self._first()
        place, facts, steps = self._step(first)
        meter = Meter(self.bench, self.wishes, place, steps)
        try:
            with self._keeping_what_is_proven():
                self._search(meter, first, place, facts)
            return self._result(meter, first, place, facts)
        finally:
            meter.close()

    @contextmanager
    def _keeping_what_is_proven(self) -> Iterator[None]:
        try:
            yield
        except OutOfTime:
            self.notes.append(f"The time budget of {self.wishes.budget_s or 0:g} s ran out.")
            self._note_untried()
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.append("Stopped: what was verified by then is shown.")

    # Before anything is tried

    def _first(self) -> CapturedRun:
        self.wishes.progress("running the program", 0, 0)
        try:
            first = self.bench.watch(Version(), environment=compiler_caches(self.caches))
        except OutOfTime:
            raise ToolError(
                "The time budget ran out before the program had run once.",
                hint="Raise --budget, or use a shorter run of the program.",
            ) from None
        if first.timed_out:
            raise ToolError(
                f"The program did not finish within {self.wishes.limit_s:g} s.",
                hint="Raise --limit, or use a shorter run of the program.",
            )
        if first.exit_status:
            raise ToolError(f"The program fails: {error_words(first)}.")
        if not first.digest.graphs:
            raise ToolError(
                "The program compiled nothing, so there is nothing to tune.",
                hint="If it never calls torch.compile, --compile-all compiles its outermost "
                "modules.",
            )
        return first

    def _step(self, first: CapturedRun) -> tuple[StepPlace, StepFacts, int | None]:
        """Where it is, what it has, and how many there are: None where no end was seen."""
        self.wishes.progress("finding the step", 0, 0)
        places = possible_steps(first.run, Version(), self.wishes.step)
        files = {place.file for place in places}
        texts = {}
        try:
            for file in files:
                text = Version().text_of(file) or ""
                # A mark says its number among all places, so each file is marked for itself.
                numbers = [number for number, each in enumerate(places) if each.file == file]
                made = marked(text, [places[number] for number in numbers])
                texts[file] = _renumbered(made, numbers)
            counted = self._counted(Version(texts), len(places))
        except (StepFailed, Refused) as failure:
            raise ToolError(f"The program's step was not found: {failure}.") from None
        except OutOfTime:
            raise ToolError("The time budget ran out before the step was found.") from None
        counts = counted["counts"]
        number = choose(places, counts)
        place = places[number]
        if counts[number] < ENOUGH and counted["ended"]:
            raise ToolError(
                f"The step at {self._named(place)} ran {counts[number]} times; to measure it, at "
                f"least {ENOUGH} are needed.",
                hint="Run the program with more steps.",
            )
        facts = msgspec.convert(counted["facts"], StepFacts)
        self.wishes.tell(f"the step is {place.words} {self._named(place)}")
        return place, facts, counts[number] if counted["ended"] else None

    def _counted(self, version: Version, places: int) -> dict[str, Any]:
        given: dict[str, Any] = {"places": places, "seconds": _COUNTING_S}
        with Stepped(self.bench, version, "count", self.caches, **given) as process:
            said = process.hear("counted")
        if said is None:
            raise StepFailed("the program ended without it")
        return said

    def _named(self, place: StepPlace) -> str:
        root = self.target.root
        inside = place.file.startswith(root + os.sep)
        return f"{os.path.relpath(place.file, root) if inside else place.file}:{place.line}"

    # The search itself

    def _search(self, meter: Meter, first: CapturedRun, place: StepPlace, facts: StepFacts) -> None:
        tuned = TunedProgram(self._program(first, Version()), facts, place)
        wanted = [c for c in self.candidates if not self.wishes.only or c.id in self.wishes.only]
        if any(each.id == "fixes" for each in wanted):
            tuned = fixed_version(self.target, self.wishes, tuned)
        self._propose(meter, tuned, wanted)
        if not self.trials:
            return
        judge = NumbersJudge(meter, self.wishes)
        batches = self._batches()
        if self.wishes.at_once > 1:
            meter.start(batches[0])  # The original compiles beside them.
        try:
            judge.anchor()
        except StepFailed as failure:
            raise ToolError(f"The step cannot be measured: {failure}.") from None
        with self._leaving(_FOR_PROOF):
            self._first_measurements(meter, judge, batches)
        promising = [trial for trial in self.trials if trial.promising]
        with self._leaving(_FOR_WHOLE):
            self._second(meter, promising)
        with self._leaving(_FOR_END):
            self._combine(meter, judge, tuned, promising)
        self._whole_program(first)

    def _batches(self) -> list[list[TuneTrial]]:
        """What compiles at the same time, what autotunes apart from the rest: who is quick does not
        wait for it. The original is one of the first batch, so that its compile time and theirs
        are those of a machine that is as busy."""
        quick = [t for t in self.trials if not any(c.autotunes for c in t.candidates)]
        slow = [t for t in self.trials if t not in quick]
        room = max(1, self.wishes.at_once - 1)
        first = [quick[:room]] if quick[:room] else []
        return [*first, *self._groups(quick[room:]), *self._groups(slow)]

    def _first_measurements(
        self, meter: Meter, judge: NumbersJudge, batches: list[list[TuneTrial]]
    ) -> None:
        """What a batch leaves of its share the later ones get."""
        for number, batch in enumerate(batches):
            if not meter.compiles(batch) and self.bench.deadline.left_s < meter.ready_s:
                raise OutOfTime  # A version is not ready by then.
            meter.measure(batch, "measuring", 1 / (len(batches) - number))
            for trial in batch:
                judge_first(trial, meter, judge)
                self.wishes.tell(f"{trial.id}: {trial.verdict}: {trial.reason}")

    def _note_untried(self) -> None:
        untried = [trial for trial in self.trials if trial.reason == NOT_TRIED]
        for trial in untried:
            trial.say("unverified", NO_TIME)
        if untried:
            names = ", ".join(trial.id for trial in untried)
            self.notes.append(f"Not tried for lack of time: {names}. Raise --budget.")

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
            self.notes.append(f"The time budget of {self.wishes.budget_s or 0:g} s was short.")
            self._note_untried()

    def _groups(self, trials: list[TuneTrial]) -> Iterator[list[TuneTrial]]:
        """As many as compile at the same time."""
        for start in range(0, len(trials), self.wishes.at_once):
            yield trials[start : start + self.wishes.at_once]

    def _program(self, first: CapturedRun, version: Version) -> Program:
        return Program(first.run, first.digest, main_file(self.target), dict(version.files))

    def _propose(self, meter: Meter, tuned: TunedProgram, wanted: list[TuneCandidate]) -> None:
        for candidate in wanted:
            try:
                version = Version().with_patch(candidate.propose(tuned))
                meter.with_mark(version)
            except Refused as reason:
                self.refused.append((candidate, str(reason)))
                continue
            folder = meter.new_folder(candidate.id)
            self.trials.append(TuneTrial((candidate,), version, folder))

    def _second(self, meter: Meter, promising: list[TuneTrial]) -> None:
        """Fresh processes on both sides: an independent measurement."""
        meter.drop_base()
        for group in self._groups(sorted(promising, key=lambda each: each.value, reverse=True)):
            meter.measure(group, "measuring again")
            for trial in group:
                judge_second(trial)
                self.wishes.tell(f"{trial.id}: {trial.verdict}: {trial.reason}")
            self.best = next(iter(self._winners(promising)), None)

    def _winners(self, trials: list[TuneTrial]) -> list[TuneTrial]:
        allowed = {"verified", "apart"} if self.wishes.lower_precision else {"verified"}
        found = [t for t in trials if t.verdict in allowed and not t.for_compile_time]
        return sorted(found, key=lambda trial: trial.value, reverse=True)

    # All of it

    def _combine(
        self, meter: Meter, judge: NumbersJudge, tuned: TunedProgram, promising: list[TuneTrial]
    ) -> None:
        """The best with the others that go with it: all at once, else one after the other."""
        winners = self._winners(promising)
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
        meter.measure([whole], "combining")
        judge_first(whole, meter, judge)
        if not whole.promising or whole.value <= self.best.value:
            return False
        meter.drop_base()
        meter.measure([whole], "combining, again")
        judge_second(whole)
        return whole.verdict in ("verified", "apart")

    def _whole_program(self, first: CapturedRun) -> None:
        """It must also come to its end, as the original does."""
        if self.best is None:
            return
        self.wishes.progress("running the whole program", 0, 0)
        try:
            caches = compiler_caches(self.best.folder)
            self.after = self.bench.watch(self.best.version, fresh=True, environment=caches)
        except OutOfTime:
            self.notes.append("The time budget ended before the whole program had run once more.")
            return
        if self.after.timed_out or self.after.exit_status != first.exit_status:
            self.best.say("rejected", f"the whole program fails with it: {error_words(self.after)}")
            self.best = None

    # What is told

    def _result(
        self, meter: Meter, first: CapturedRun, place: StepPlace, facts: StepFacts
    ) -> TuneResult:
        found = Findings(
            root=self.target.root,
            step=self._named(place),
            device=facts.device_name,
            trials=self.trials,
            refused=self.refused,
            best=self.best,
            notes=tuple(self.notes),
            compile_s=meter.compile_s,
        )
        attempts, outcome = tuple(found.attempts()), found.outcome()
        run = ""
        if self.wishes.home is not None:
            kept = keep_tuning(first.folder, self.wishes.home, [*attempts, outcome])
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
            before=losses_of(first.digest, first.operators),
            after=losses_of(self.after.digest, self.after.operators) if self.after else None,
            caches=self.best.folder if self.best is not None and self.wishes.caches else None,
        )


def _renumbered(text: str, numbers: list[int]) -> str:
    """Marks of one file say their numbers among the places of all files."""
    for here in reversed(range(len(numbers))):
        text = text.replace(f"{MARK}({here})", f"{MARK}({numbers[here]})")
    return text
