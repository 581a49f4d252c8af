"""The search itself: run, propose, prove each fix alone, put the proven ones together, run again.

A mended break may uncover the next one, so it goes in rounds, each on top of what was kept before,
until a round wins nothing. What is handed out was proven as a whole against the original.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import msgspec

from compilescope.capture.target import Target
from compilescope.errors import ToolError
from compilescope.fixes.merging import merge
from compilescope.fixes.subject import Program
from compilescope.fixes.subjects import subjects_of
from compilescope.repair.search.attempts import Tried, TryLog, try_subject
from compilescope.repair.search.budget import SPENT, Budget
from compilescope.repair.search.outcome import Outcome
from compilescope.repair.search.places import main_file
from compilescope.repair.search.recording import keep_run
from compilescope.repair.search.steps import (
    Step,
    ending_of,
    environment_of,
    has_vanished,
    last_words,
    losses_in_words,
    step_of,
    still_lost,
    totals,
)
from compilescope.repair.search.wishes import Wishes
from compilescope.repair.trials.losing import same_losses
from compilescope.repair.trials.verification import Times, Verification
from compilescope.repair.trials.verifying import Baseline, confirm, measure, verify
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.warm.parent import WarmParent
from compilescope.repair.trials.watched import Watched
from compilescope.repair.trials.workbench import OutOfTime, Workbench
from compilescope.rules.findings import findings

_ROUNDS_ALONE = 2


def search(target: Target, wishes: Wishes, warm: WarmParent | None = None) -> Outcome:
    """Raises `ToolError` where the program cannot be run at all. `warm`: a process for trials that
    other searches use too."""
    target.check()
    wishes.check()
    with (
        WarmParent() as own,
        Workbench(
            target,
            compile_names=wishes.compile_names,
            backend=wishes.backend,
            limit_s=wishes.limit_s,
            stdin=wishes.stdin,
            seed=wishes.seed,
            warm=warm or own,
        ) as bench,
    ):
        return _Search(target, wishes, bench, Budget(wishes.budget_s, bench)).run()


@dataclass
class _Search:
    target: Target
    wishes: Wishes
    bench: Workbench
    budget: Budget
    log: TryLog = field(default_factory=TryLog)

    def run(self) -> Outcome:
        wishes = self.wishes
        first = self._first()
        notes = self._look_over(first)
        original = Baseline(self.bench, Version(), first)
        steps = [Step(Version(), first)]
        # Nothing can be proven on a program that does not come to its end by itself.
        if not original.unusable:
            with self.budget.searching(), suppress(OutOfTime):
                self._rounds(original, steps)
        steps, proof = self._prove(original, steps)
        times = None
        if wishes.timed and len(steps) > 1:
            with suppress(OutOfTime):
                times = self._times(steps)
        return self._outcome(first, steps, proof, times, notes)

    def _rounds(self, base: Baseline, steps: list[Step]) -> None:
        for number in range(1, self.wishes.most_rounds + 1):
            self.log.round = number
            step = self._round(base, steps[-1].watched)
            if step is None:
                break
            steps.append(step)
            base = Baseline(self.bench, step.version, step.watched)

    # Before anything is tried

    def _first(self) -> Watched:
        """The run that all else is held against."""
        self.wishes.progress("running the program", 0, 0)
        try:
            first = self.bench.watch(Version())
            if not self.bench.cold and (first.exit_status or not first.digest.graphs):
                # Before it is said that a program fails, or compiles nothing, a fresh process is
                # asked: it is the one that its user knows.
                fresh = self.bench.watch(Version(), fresh=True)
                same = same_losses(first.digest, fresh.digest)
                if not same or ending_of(first) != ending_of(fresh):
                    self.bench.cool("it behaves differently in a fresh process")
                first = fresh
        except OutOfTime:
            raise ToolError(
                "The time budget ran out before the program had run once.",
                hint="Raise --budget, or use a shorter run of the program.",
            ) from None
        self.wishes.tell(f"ran the program: {losses_in_words(first)}")
        return first

    def _look_over(self, first: Watched) -> list[str]:
        if first.timed_out:
            raise ToolError(
                f"The program did not finish within {self.wishes.limit_s:g} s.",
                hint="Raise --limit, or use a shorter run of the program.",
            )
        seen = first.digest
        if not seen.torch and not seen.graphs and first.exit_status:
            raise ToolError(
                f"The program failed before it reached torch: {last_words(first)}.",
                hint="Does it run without compilescope, with the same arguments?",
            )
        notes = []
        if first.exit_status and not seen.failures:
            how = f"with status {first.exit_status}"
            how = how if first.exit_status > 0 else f"on signal {-first.exit_status}"
            notes.append(
                f"The program itself ends {how} ({last_words(first)}), so nothing could be "
                "verified."
            )
        if not seen.graphs and not findings(seen):
            notes.append(
                "Nothing was compiled. If the program never calls torch.compile, --compile-all "
                "compiles its outermost modules."
            )
        return notes

    # One round

    def _program(self, base: Baseline, watched: Watched) -> Program:
        main = main_file(self.target)
        return Program(watched.run, watched.digest, main, dict(base.version.files))

    def _round(self, base: Baseline, watched: Watched) -> Step | None:
        program = self._program(base, watched)
        subjects = [each for each in subjects_of(program) if self.wishes.wants(each)]
        if not subjects:
            return None
        places = {(each.file, each.line) for each in subjects if os.path.isabs(each.file)}
        self.wishes.progress("recording values", 0, 0)
        if not self.budget.is_spent:
            with suppress(OutOfTime):
                program = replace(program, facts=self.bench.survey(base.version, places))
        won: list[Tried] = []
        for number, subject in enumerate(subjects):
            subject = replace(subject, program=program)
            what = f"{os.path.basename(subject.file)}:{subject.line} {subject.finding.title}"
            self.wishes.progress(what, number, len(subjects))
            if any(has_vanished(subject, each.verification) for each in won):
                continue
            tried = try_subject(subject, base, self.wishes, self.log, self.budget)
            if tried is not None:
                won.append(tried)
        if not won:
            return None
        try:
            with self.budget.joining():
                return self._together(base, program, won)
        except OutOfTime:
            for tried in won[1:]:
                self.log.drop(tried, "the time budget ran out before it was tried with the others")
            return self._together(base, program, won[:1])  # Runs nothing.

    def _together(self, base: Baseline, program: Program, won: list[Tried]) -> Step | None:
        """The fixes that were each proven alone, as many of them as go together."""
        kept, step = self._joined(base, program, won)
        if step is None and len(kept) > 1:
            self.wishes.progress("combining fixes", 0, 0)
            kept, step = self._one_by_one(base, program, won)
        if step is None:
            return None
        for tried in kept:
            self.log.keep(tried)
        return step

    def _joined(
        self, base: Baseline, program: Program, won: list[Tried]
    ) -> tuple[list[Tried], Step | None]:
        bases = {file: program.text(file) for tried in won for file in tried.patch.files}
        files, numbers = merge(bases, [tried.patch.files for tried in won])
        kept = [won[number] for number in numbers]
        version = Version(
            {**base.version.files, **files},
            {**base.version.environment, **environment_of(kept)},
        )
        if len(kept) == 1:
            return kept, step_of(version, kept, kept[0].verification)
        verification = verify(
            self.bench,
            base,
            version,
            gone={tried.subject.finding.fingerprint for tried in kept},
            patch_allows=frozenset().union(*(tried.patch.allows for tried in kept)),
            states=" ".join(tried.patch.states for tried in kept if tried.patch.states),
        )
        return kept, step_of(version, kept, verification)

    def _one_by_one(
        self, base: Baseline, program: Program, won: list[Tried]
    ) -> tuple[list[Tried], Step | None]:
        """Those that fail beside the ones before them are dropped."""
        kept, step = self._joined(base, program, won[:1])
        for tried in won[1:]:
            more, joined = self._joined(base, program, [*kept, tried])
            if joined is not None and len(more) > len(kept):
                kept, step = more, joined
            elif len(more) > len(kept):
                self.log.drop(tried, "it works alone, but not together with the other fixes")
        return kept, step

    # All of it

    def _prove(
        self, original: Baseline, steps: list[Step]
    ) -> tuple[list[Step], Verification | None]:
        """The longest chain of rounds that holds as a whole against the original."""
        while len(steps) > 1:
            proof = self._proof(original, steps)
            if proof is not None and proof.verdict == "verified":
                self.wishes.tell("verified in a fresh process")
                return [
                    *steps[:-1],
                    replace(steps[-1], watched=proof.watched or steps[-1].watched),
                ], proof
            reason = (
                proof.reason
                if proof is not None
                else "the time budget ran out before it was verified"
            )
            for tried in steps[-1].kept:
                self.log.drop(tried, f"not verified with all fixes together: {reason}")
            steps = steps[:-1]
        return steps, None

    def _proof(self, original: Baseline, steps: list[Step]) -> Verification | None:
        """None where there is no time for it."""
        kept = [tried for step in steps for tried in step.kept]
        asked: dict[str, Any] = {
            "gone": {tried.subject.finding.fingerprint for tried in steps[1].kept},
            "patch_allows": frozenset().union(*(tried.patch.allows for tried in kept)),
            "states": " ".join(tried.patch.states for tried in kept if tried.patch.states),
        }
        version = steps[-1].version
        self.wishes.progress("verifying all fixes together", 0, 0)
        try:
            # The first step was held against the original itself.
            proof = steps[1].verification if len(steps) == 2 else None
            if proof is None:
                with self.budget.joining():
                    proof = verify(self.bench, original, version, **asked)
            if proof.verdict == "verified" and not self.bench.cold:
                self.wishes.progress("verifying in a fresh process", 0, 0)
                fresh = confirm(self.bench, original, version, **asked)
                checks = fresh.checks if fresh.verdict != "verified" else proof.checks
                proof = msgspec.structs.replace(fresh, checks=checks, notes=proof.notes)
            return proof
        except OutOfTime:
            return None

    def _times(self, steps: list[Step]) -> Times:
        """Of all together; and of each alone, where there are several."""
        kept = [(before, tried) for before, after in pairwise(steps) for tried in after.kept]
        self.wishes.progress("timing", 0, len(kept))
        times = measure(self.bench, Version(), steps[-1].version)
        for number, (before, tried) in enumerate(kept, 1):
            alone = times
            if len(kept) > 1:
                self.wishes.progress("timing", number, len(kept))
                version = before.version.with_patch(tried.patch)
                alone = measure(self.bench, before.version, version, rounds=_ROUNDS_ALONE)
            self.log.time(tried, alone)
        return times

    def _not_tried(self) -> list[str]:
        skipped = len({each.fingerprint for each in self.log.attempts() if each.reason == SPENT})
        if not skipped:
            return []
        causes = "1 cause was" if skipped == 1 else f"{skipped} causes were"
        budget = f"The time budget of {self.wishes.budget_s or 0:g} s ran out"
        return [f"{budget}: {causes} not fully tried."]

    def _outcome(
        self,
        first: Watched,
        steps: list[Step],
        proof: Verification | None,
        times: Times | None,
        notes: list[str],
    ) -> Outcome:
        last = steps[-1]
        home = self.wishes.home
        files = dict(last.version.files)
        untouched = self._program(Baseline(self.bench, Version(), first), first)
        outcome = Outcome(
            before=totals(first),
            after=totals(last.watched),
            attempts=tuple(self.log.attempts()),
            files=files,
            originals={file: untouched.text(file) for file in files},
            environment=dict(last.version.environment),
            main=main_file(self.target),
            verdict=proof.verdict if proof is not None else "unverified",
            reason=proof.reason if proof is not None else "",
            times=times,
            notes=(*notes, *self._not_tried()),
            left=tuple(still_lost(last.watched, self.log.attempts())),
        )
        run = keep_run(first.folder, home, outcome) if home is not None else None
        return replace(outcome, run=run.name) if run is not None else outcome
