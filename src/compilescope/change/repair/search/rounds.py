"""The search itself: run, propose, prove each fix alone, put the proven ones together, run again.

A mended break may uncover the next one, so it goes in rounds, each on top of what was kept before,
until a round wins nothing. What is handed out was proven as a whole against the original.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.change.fixes.subject import Program, Subject, subjects_of
from compilescope.change.repair.search.at_once import Grouping, together_words, version_with
from compilescope.change.repair.search.attempts import (
    ProposedFix,
    SearchStep,
    asked_of,
    best_first,
    ending_of,
    ending_with,
    first_proposal,
    gains,
    has_vanished,
    log_left_out,
    log_member,
    look_over,
    loses_no_more,
    losses_in_words,
    merged,
    step_of,
    still_lost,
    try_subject,
    values_for,
    verify_all,
)
from compilescope.change.repair.search.budget import Budget, not_tried
from compilescope.change.repair.search.next_causes import try_with_next
from compilescope.change.repair.search.options import SearchOptions, main_file
from compilescope.change.repair.search.outcome import SearchResult, keep_run
from compilescope.change.repair.search.placements import Placements
from compilescope.change.repair.search.proposals import proposed_steps
from compilescope.change.repair.search.pruning import prune
from compilescope.change.repair.search.timing import measure_steps
from compilescope.change.repair.search.try_log import Tried, TryLog
from compilescope.change.repair.trials.baseline import TrialBaseline, without_inductor
from compilescope.change.repair.trials.losses import losses_of, same_losses
from compilescope.change.repair.trials.recorded_runs import CapturedRun, Verification
from compilescope.change.repair.trials.verifier import NEVER_WARM, confirm, verify
from compilescope.change.repair.trials.version import Version, changes_between
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.findings import findings
from compilescope.record.fix_search import FixAttempt, Placement, Times


def search(target: Target, options: SearchOptions, warm: WarmParent | None = None) -> SearchResult:
    """Raises `ToolError` where the program cannot be run at all. `warm`: a process for trials that
    other searches use too."""
    target.check()
    options.check()
    deadline = options.deadline or Deadline(options.budget_s)
    with (
        WarmParent() as own,
        options.workbench(target, deadline=deadline, warm=warm or own) as bench,
    ):
        budget = Budget(deadline, bench, options.following)
        with budget.whole():
            return _Search(target, options, bench, budget).run()


@dataclass
class _Search:
    target: Target
    options: SearchOptions
    bench: Workbench
    budget: Budget
    log: TryLog = field(default_factory=TryLog)
    cut: list[str] = field(default_factory=list)
    """What the budget ended."""

    @cached_property
    def grouping(self) -> Grouping:
        return Grouping(self.options.progress)

    def run(self) -> SearchResult:
        options = self.options
        first = self._first()
        notes = look_over(first, options.limit_s)
        original = TrialBaseline(self.bench, Version(), first)
        steps, proof, light = self._search(original, lightly=True)
        placements = Placements(self.bench, self.options, self.log, self.budget)
        if proof is not None:
            steps, proof = self._best_placed(placements, original, light, steps, proof)
        if not original.unusable:
            steps, proof = self._with_proposals(original, light, steps, proof)
        times: Times | None = None
        if options.timed and len(steps) > 1:
            known = placements.times(steps[-1])
            asked = (self.bench, self.options, self.log, self.budget)
            times = Times(reason=NEVER_WARM)
            if original.calls_again:
                times = measure_steps(*asked, steps, known)
        return self._outcome(first, steps, proof, times, notes, placements.told(steps[-1]))

    def _search(
        self, original: TrialBaseline, *, lightly: bool
    ) -> tuple[list[SearchStep], Verification | None, TrialBaseline]:
        """What is kept and holds, and what it was held against. `lightly`: tried is without
        Inductor where that spares much, and only where what holds so does not hold with it, all of
        it is tried with Inductor."""
        steps, base = [SearchStep(Version(), original.captured)], original
        # Nothing can be proven on a program that does not come to its end by itself.
        if not original.unusable:
            try:
                with self.budget.searching():
                    base = without_inductor(original) if lightly else original
                    self.budget.replays_last = base.light
                    self._rounds(base, steps)
            except OutOfTime:
                self.cut.append("the search")
        cold = self.bench.cold
        needed = self._needed(original, base, steps)
        if needed is not None:
            return *needed, base
        held, proof = self._prove(original, base, steps)
        if base.light and len(held) < len(steps) and not self.cut and self.bench.cold == cold:
            self.log, self.grouping = TryLog(), Grouping(self.options.progress)
            return self._search(original, lightly=False)
        return held, proof, base

    def _rounds(self, original: TrialBaseline, steps: list[SearchStep]) -> None:
        base = original
        for number in range(1, self.options.most_rounds + 1):
            self.log.begin_round(number)
            step = self._round(base, steps[-1].captured)
            if step is None:
                break
            steps.append(step)
            values = values_for(original, steps)
            base = TrialBaseline(
                self.bench, step.version, step.captured, values, light=original.light
            )

    # Before anything is tried

    def _first(self) -> CapturedRun:
        """The run that all else is held against."""
        self.options.progress("running the program", 0, 0)
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
        self.options.tell(f"ran the program: {losses_in_words(first)}")
        return first

    # One round

    def _program(self, base: TrialBaseline, captured: CapturedRun) -> Program:
        main = main_file(self.target)
        return Program(captured.run, captured.digest, main, dict(base.version.files))

    def _round(self, base: TrialBaseline, captured: CapturedRun) -> SearchStep | None:
        program = self._program(base, captured)
        written = changes_between(Version(), base.version)
        subjects = [
            each
            for each in subjects_of(program)
            # What a fix wrote and still breaks is what it could not do without.
            if self.options.wants(each) and not written.is_new(each.file, each.line)
        ]
        if not subjects:
            return None
        lines = (place for each in subjects for place in each.watched)
        places = {(file, line) for file, line in lines if os.path.isabs(file)}
        self.options.progress("recording values", 0, 0)
        if not self.budget.is_spent:
            with suppress(OutOfTime):
                program = replace(program, facts=base.survey(places))
        subjects = [replace(each, program=program) for each in subjects]
        waiting = deque(subjects)
        # What leaves a part to eager execution comes first where it may do all of it alone; later,
        # where nothing else wins.
        whole = base.version != Version()
        won, followed = self._each_alone(base, waiting, until_won=True, whole=whole)
        if won and won[0].patch.leaves_graph:
            other = self._kept_whole(base, program, won[0], subjects)
            if isinstance(other, SearchStep):
                return other
            won = [other or won[0]]
        if won and waiting:
            step = self._at_once(base, program, won[0], waiting)
            if step is not None:
                return step
            whole = whole or not won[0].patch.leaves_graph
            more, behind = self._each_alone(base, waiting, won, whole=whole)
            won, followed = [*won, *more], [*followed, *behind]
        for whole in (True, False):
            if not won and not followed:
                again = deque(subjects)
                won, followed = self._each_alone(base, again, keeping=True, whole=whole)
        try:
            with self.budget.joining():
                step = self._together(base, program, won) if won else None
                step = step or self._only_together(base, program, followed)
                return step or try_with_next(
                    base, main_file(self.target), self.options, self.log, self.budget
                )
        except OutOfTime:
            for tried in won[1:]:
                self.log.drop(tried, "the time budget ran out before it was tried with the others")
            return self._together(base, program, won[:1]) if won else None  # Runs nothing.

    def _kept_whole(
        self, base: TrialBaseline, program: Program, leaving: Tried, subjects: Sequence[Subject]
    ) -> Tried | SearchStep | None:
        """What wins as much as a fix that leaves a part to eager execution, and leaves less.

        Where several lines are lost, their first proposals are tried once, all together: one of
        them alone does not win as much. A line without any may be lost only for another.
        """
        mended = [each for each in subjects if has_vanished(each, leaving.verification)]
        found: Tried | SearchStep | None = None
        if len({(each.file, each.line) for each in mended}) == 1:
            won, _ = self._each_alone(base, deque(mended), until_won=True, whole=True)
            if won and loses_no_more(won[0].verification, leaving.verification):
                found = won[0]
        else:
            found = self._whole_together(base, program, leaving, mended)
        if found is None:
            with suppress(OutOfTime):
                found = try_with_next(
                    base,
                    main_file(self.target),
                    self.options,
                    self.log,
                    self.budget,
                    instead_of=leaving.verification,
                )
        if found is not None:
            self.log.drop(leaving, "another fix wins as much with less beside the graph")
        return found

    def _whole_together(
        self, base: TrialBaseline, program: Program, leaving: Tried, mended: Sequence[Subject]
    ) -> SearchStep | None:
        proposals: dict[tuple[str, int], ProposedFix] = {}
        for each in mended:
            proposal = first_proposal(each, self.options, self.log, whole=True)
            if proposal is not None and not proposal.patch.needs_human:
                proposals.setdefault((each.file, each.line), proposal)
        lines = {(each.file, each.line) for each in mended}
        if 2 * len(proposals) < len(lines) or not proposals or self.budget.is_spent:
            return None  # Too much would still be lost.
        group = [list(proposals.values())[at] for at in merged(program, [*proposals.values()])[1]]
        self.options.progress(f"{len(group)} fixes at once", 0, 0)
        version = version_with(base, program, group)
        try:
            proof = verify_all(base, version, group)
        except OutOfTime:
            return None
        if proof.verdict != "verified" or not loses_no_more(proof, leaving.verification):
            return None
        members = [log_member(each, proof, self.options, self.log) for each in group]
        for tried in members:
            self.log.keep(tried)
        return step_of(version, members, proof)

    def _each_alone(
        self,
        base: TrialBaseline,
        waiting: deque[Subject],
        known: Sequence[Tried] = (),
        *,
        until_won: bool = False,
        keeping: bool = False,
        whole: bool = False,
    ) -> tuple[list[Tried], list[Tried]]:
        """What is proven, and what would be if another cause did not take its place. What waits
        may be gone with what is `known`."""
        won: list[Tried] = []
        followed: list[Tried] = []
        total = len(waiting)
        while waiting and not (until_won and won):
            subject = waiting.popleft()
            what = f"{os.path.basename(subject.file)}:{subject.line} {subject.finding.title}"
            self.options.progress(what, total - len(waiting) - 1, total)
            if any(has_vanished(subject, each.verification) for each in (*known, *won)):
                continue
            tried = try_subject(
                subject, base, self.options, self.log, self.budget, keeping=keeping, whole=whole
            )
            if tried is not None:
                (won if tried.alone else followed).append(tried)
        return won, followed

    def _at_once(
        self, base: TrialBaseline, program: Program, first: Tried, waiting: Iterable[Subject]
    ) -> SearchStep | None:
        """All first proposals in one version with what was proven. What it leaves is for the next
        round, so there has to be one."""
        if self.options.most_rounds == 1 or self.budget.is_spent:
            return None
        left = [each for each in waiting if not has_vanished(each, first.verification)]
        found = [first_proposal(each, self.options, self.log) for each in left]
        proposals = [each for each in found if each is not None]
        held = None
        with suppress(OutOfTime):
            held = self.grouping.try_all(base, program, first, proposals)
        if held is None:
            return None
        note = together_words(len(held.proposals))
        proof = msgspec.structs.replace(held.verification, notes=(note, *held.verification.notes))
        others = [log_member(each, proof, self.options, self.log) for each in held.proposals]
        for tried in (first, *others):
            self.log.keep(tried)
        return step_of(held.version, [first, *others], held.verification)

    def _together(
        self, base: TrialBaseline, program: Program, won: list[Tried]
    ) -> SearchStep | None:
        """The fixes that were each proven alone, as many of them as go together."""
        won = best_first(program, won)
        kept, step = self._joined(base, program, won)
        if step is None and len(kept) > 1:
            self.options.progress("combining fixes", 0, 0)
            kept, step = self._one_by_one(base, program, won)
        if step is None:
            return None
        for tried in kept:
            self.log.keep(tried)
        return step

    def _only_together(
        self, base: TrialBaseline, program: Program, followed: list[Tried]
    ) -> SearchStep | None:
        """Two guards that fail at once: each of their fixes leaves the other's recompile, both
        leave none."""
        if len(followed) < 2:
            return None
        self.options.progress("combining fixes", 0, 0)
        kept, step = self._joined(base, program, followed)
        verification = step.verification if step is not None else None
        if verification is None or not gains(kept[0].subject, verification):
            return None
        for tried in kept:
            self.log.keep_joined(tried)
        return step

    def _joined(
        self, base: TrialBaseline, program: Program, won: list[Tried]
    ) -> tuple[list[Tried], SearchStep | None]:
        kept = [won[number] for number in merged(program, won)[1]]
        version = version_with(base, program, kept)
        if len(kept) == 1:
            return kept, step_of(version, kept, kept[0].verification)
        return kept, step_of(version, kept, verify_all(base, version, kept))

    def _one_by_one(
        self, base: TrialBaseline, program: Program, won: list[Tried]
    ) -> tuple[list[Tried], SearchStep | None]:
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

    def _needed(
        self, original: TrialBaseline, light: TrialBaseline, steps: list[SearchStep]
    ) -> tuple[list[SearchStep], Verification] | None:
        """The same without what later fixes have made unnecessary, where there is any, and where
        the others hold without it as a whole."""
        pruning = prune(light, steps, self.options, self.log, self.budget)
        if not pruning.left_out:
            return None
        proof = self._proof(original, light, pruning.steps, steps[1].kept)
        if proof is None or proof.verdict != "verified":
            return None
        for tried in pruning.left_out:
            log_left_out(tried, self.options, self.log)
        if pruning.moved is not None:
            self.log.move(pruning.moved, proof)
        return ending_with(pruning.steps, proof), proof

    def _prove(
        self, original: TrialBaseline, light: TrialBaseline, steps: list[SearchStep]
    ) -> tuple[list[SearchStep], Verification | None]:
        """The longest chain of rounds that holds as a whole against the original."""
        while len(steps) > 1:
            proof = self._proof(original, light, steps, steps[1].kept)
            if proof is not None and proof.verdict == "verified":
                return ending_with(steps, proof), proof
            reason = (
                proof.reason
                if proof is not None
                else "the time budget ran out before it was verified"
            )
            for tried in steps[-1].kept:
                self.log.drop(tried, f"not verified with all fixes together: {reason}")
            steps = steps[:-1]
        return steps, None

    def _proof(
        self,
        original: TrialBaseline,
        light: TrialBaseline,
        steps: list[SearchStep],
        first: Sequence[Tried],
    ) -> Verification | None:
        """Of the last step, against the original, whose causes in the first round have to be gone;
        None where there is no time for it."""
        kept = [tried for step in steps for tried in step.kept]
        asked = asked_of(kept, first)
        version = steps[-1].version
        self.options.progress("verifying all fixes together", 0, 0)
        # The first step was held against the original itself.
        proof = steps[1].verification if len(steps) == 2 else None
        if proof is None:
            try:
                with self.budget.joining():
                    proof = verify(self.bench, light, version, **asked)
            except OutOfTime:
                return None
        if proof.verdict == "verified" and (light.light or not self.bench.cold):
            self.options.progress("verifying in a fresh process", 0, 0)
            try:
                fresh = confirm(self.bench, original, version, **asked, replayed=not light.light)
            except OutOfTime:
                # It has passed every check in forks of a warm process: that is not thrown away.
                self.cut.append("the check in a fresh process")
                return proof
            checks = fresh.checks if fresh.verdict != "verified" else proof.checks
            proof = msgspec.structs.replace(
                fresh, checks=checks, notes=(*proof.notes, *fresh.notes), inputs=proof.inputs
            )
        if proof.verdict == "verified":
            self.options.tell("verified in a fresh process")
        return proof

    def _with_proposals(
        self,
        original: TrialBaseline,
        light: TrialBaseline,
        steps: list[SearchStep],
        proof: Verification | None,
    ) -> tuple[list[SearchStep], Verification | None]:
        """What somebody else proposes for what is left, on top of what is kept."""
        asked = (self.bench, self.options, self.log, self.budget, steps[-1])
        more, main = list(steps), main_file(self.target)
        try:
            with self.budget.searching():
                for step in proposed_steps(*asked, main=main, light=light.light):
                    more.append(step)
        except OutOfTime:
            self.cut.append("the search for a model's patches")
        return self._prove(original, light, more) if len(more) > len(steps) else (steps, proof)

    def _best_placed(
        self,
        placements: Placements,
        original: TrialBaseline,
        light: TrialBaseline,
        steps: list[SearchStep],
        proof: Verification,
    ) -> tuple[list[SearchStep], Verification | None]:
        """Another way to say what is compiled, where that is better and holds as a whole."""
        better = placements.compare(light, steps)
        if better is None:
            return steps, proof
        found, other = self._prove(original, light, [steps[0], better])
        if other is None:
            return steps, proof
        for step in steps:
            for tried in step.kept:
                self.log.drop(tried, "another placement of torch.compile is better here")
        for tried in better.kept:
            self.log.keep(tried)
        return found, other

    def _told(self, last: SearchStep) -> tuple[FixAttempt, ...]:
        """Where nothing fitted a cause, that is told as long as the cause is there: the fix of
        another may have taken it away."""
        lost = {each.fingerprint for each in findings(last.captured.digest)}
        return tuple(each for each in self.log.attempts() if each.fix or each.fingerprint in lost)

    def _outcome(
        self,
        first: CapturedRun,
        steps: list[SearchStep],
        proof: Verification | None,
        times: Times | None,
        notes: list[str],
        placements: tuple[Placement, ...] = (),
    ) -> SearchResult:
        last = steps[-1]
        home = self.options.home
        files = dict(last.version.files)
        untouched = self._program(TrialBaseline(self.bench, Version(), first), first)
        attempts = self._told(last)
        outcome = SearchResult(
            before=losses_of(first.digest, first.operators),
            after=losses_of(last.captured.digest, last.captured.operators),
            attempts=attempts,
            files=files,
            originals={file: untouched.text(file) for file in files},
            environment=dict(last.version.environment),
            verdict=proof.verdict if proof is not None else "unverified",
            reason=proof.reason if proof is not None else "",
            times=times,
            notes=(
                *notes,
                *(proof.not_compared if proof else ()),
                *not_tried(self.log.attempts(), self.budget, self.cut),
            ),
            left=tuple(still_lost(last.captured, attempts)),
            uncovered=proof.uncovered if proof is not None else (),
            placements=placements,
            allows=frozenset().union(*(each.patch.allows for step in steps for each in step.kept)),
        )
        run = keep_run(first.folder, home, outcome) if home is not None else None
        return replace(outcome, run=run.name) if run is not None else outcome
