"""The search itself: run, propose, prove each fix alone, put the proven ones together, run again.

A mended break may uncover the next one, so it goes in rounds, each on top of what was kept before,
until a round wins nothing. What is handed out was proven as a whole against the original.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from itertools import pairwise

from compilescope.capture.target import Target
from compilescope.errors import ToolError
from compilescope.fixes.merging import merge
from compilescope.fixes.subject import Program, Subject
from compilescope.fixes.subjects import subjects_of
from compilescope.repair.search.attempts import Tried, TryLog, try_subject
from compilescope.repair.search.outcome import Attempt, Outcome, Totals
from compilescope.repair.search.places import main_file
from compilescope.repair.search.recording import keep_run
from compilescope.repair.search.wishes import Wishes
from compilescope.repair.trials.verification import Times, Verification
from compilescope.repair.trials.verifying import Baseline, measure, verify
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import Watched
from compilescope.repair.trials.workbench import Workbench
from compilescope.rules.findings import findings

_ROUNDS_ALONE = 2


def search(target: Target, wishes: Wishes) -> Outcome:
    """Raises `ToolError` where the program cannot be run at all."""
    target.check()
    wishes.check()
    with Workbench(
        target,
        compile_names=wishes.compile_names,
        backend=wishes.backend,
        limit_s=wishes.limit_s,
        stdin=wishes.stdin,
        seed=wishes.seed,
    ) as bench:
        return _Search(target, wishes, bench).run()


@dataclass
class _Search:
    target: Target
    wishes: Wishes
    bench: Workbench
    log: TryLog = field(default_factory=TryLog)

    def run(self) -> Outcome:
        wishes = self.wishes
        wishes.progress("running the program", 0, 0)
        first = self.bench.watch(Version())
        notes = self._look_over(first)
        original = Baseline(self.bench, Version(), first)
        base, steps = original, [Step(Version(), first)]
        # Nothing can be proven on a program that does not come to its end by itself.
        rounds = 0 if original.unusable else wishes.most_rounds
        for number in range(1, rounds + 1):
            self.log.round = number
            step = self._round(base, steps[-1].watched)
            if step is None:
                break
            steps.append(step)
            base = Baseline(self.bench, step.version, step.watched)
        steps, proof = self._prove(original, steps)
        times = self._times(steps) if wishes.timed and len(steps) > 1 else None
        return self._outcome(first, steps, proof, times, notes)

    # Before anything is tried

    def _look_over(self, first: Watched) -> list[str]:
        if first.timed_out:
            raise ToolError(
                f"The program did not end within {self.wishes.limit_s:g} s.",
                hint="Give it more with --limit SECONDS, or a shorter run of it.",
            )
        seen = first.digest
        if not seen.torch and not seen.graphs and first.exit_status:
            raise ToolError(
                f"The program failed before it came to torch: {_last_words(first)}.",
                hint="Does it run without compilescope, with the same arguments?",
            )
        notes = []
        if first.exit_status and not seen.failures:
            how = f"with status {first.exit_status}"
            how = how if first.exit_status > 0 else f"by signal {-first.exit_status}"
            notes.append(
                f"The program itself ends {how} ({_last_words(first)}), so nothing could be proven."
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
        self.wishes.progress("looking at values", 0, 0)
        program = replace(program, facts=self.bench.survey(base.version, places))
        won: list[Tried] = []
        for number, subject in enumerate(subjects):
            subject = replace(subject, program=program)
            what = f"{os.path.basename(subject.file)}:{subject.line} {subject.finding.title}"
            self.wishes.progress(what, number, len(subjects))
            if any(_vanished(subject, each.verification) for each in won):
                continue
            tried = try_subject(subject, base, self.wishes, self.log)
            if tried is not None:
                won.append(tried)
        return self._together(base, program, won) if won else None

    def _together(self, base: Baseline, program: Program, won: list[Tried]) -> Step | None:
        """The fixes that were each proven alone, as many of them as go together."""
        kept, step = self._joined(base, program, won)
        if step is None and len(kept) > 1:
            self.wishes.progress("putting fixes together", 0, 0)
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
            {**base.version.environment, **_environment(kept)},
        )
        if len(kept) == 1:
            return kept, _step(version, kept, kept[0].verification)
        verification = verify(
            self.bench,
            base,
            version,
            gone={tried.subject.finding.fingerprint for tried in kept},
            patch_allows=frozenset().union(*(tried.patch.allows for tried in kept)),
            states=" ".join(tried.patch.states for tried in kept if tried.patch.states),
        )
        return kept, _step(version, kept, verification)

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
        if len(steps) == 2:
            return steps, steps[1].verification  # It was held against the original itself.
        while len(steps) > 1:
            kept = [tried for step in steps for tried in step.kept]
            self.wishes.progress("proving all together", 0, 0)
            proof = verify(
                self.bench,
                original,
                steps[-1].version,
                gone={tried.subject.finding.fingerprint for tried in steps[1].kept},
                patch_allows=frozenset().union(*(tried.patch.allows for tried in kept)),
                states=" ".join(tried.patch.states for tried in kept if tried.patch.states),
            )
            if proof.verdict == "verified":
                return steps, proof
            for tried in steps[-1].kept:
                self.log.drop(tried, f"not as part of the whole: {proof.reason}")
            steps = steps[:-1]
        return steps, None

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
        run = keep_run(first.folder, home, self.log.attempts()) if home is not None else None
        files = dict(last.version.files)
        untouched = self._program(Baseline(self.bench, Version(), first), first)
        return Outcome(
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
            notes=tuple(notes),
            run=run.name if run is not None else "",
            left=tuple(_left(last.watched, self.log.attempts())),
        )


@dataclass(frozen=True)
class Step:
    """A version that was kept, and what a run of it showed."""

    version: Version
    watched: Watched
    kept: list[Tried] = field(default_factory=list)
    verification: Verification | None = None
    """Against the step before."""


def _step(version: Version, kept: list[Tried], verification: Verification) -> Step | None:
    if verification.verdict != "verified" or verification.watched is None:
        return None
    return Step(version, verification.watched, kept, verification)


def totals(watched: Watched) -> Totals:
    seen = watched.digest
    return Totals(
        breaks=len(seen.sites),
        recompiles=sum(frame.count for frame in seen.recompiles),
        graphs=seen.graphs,
        operators=watched.operators,
        eager=len(seen.eager_frames),
        failures=len(seen.failures),
    )


def _vanished(subject: Subject, verification: Verification) -> bool:
    """Has another fix mended this one too?"""
    if verification.watched is None:
        return False
    after = findings(verification.watched.digest)
    return subject.finding.fingerprint not in {each.fingerprint for each in after}


def _environment(kept: list[Tried]) -> dict[str, str]:
    return {name: value for tried in kept for name, value in tried.patch.environment.items()}


def _left(watched: Watched, attempts: list[Attempt]) -> list[tuple[str, str]]:
    """What is still lost, with the best reason that there is."""
    reasons = {each.fingerprint: each.reason for each in attempts if not each.kept}
    told = []
    for finding in findings(watched.digest):
        place = f"{finding.file}:{finding.line}"
        told.append((place, reasons.get(finding.fingerprint) or finding.remedy or finding.message))
    return told


def _last_words(watched: Watched) -> str:
    lines = [line for line in watched.stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip().rstrip(".")[:200] if lines else "it said nothing"
