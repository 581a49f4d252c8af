"""Patches of somebody else, such as a language model, for causes that no fix of ours mends.

Who proposes gets what is known of a cause, and each of his patches with the reason why it was
rejected, as long as he goes on. What is verified is kept like a fix of ours, and says whose it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from compilescope.change.fixes.diffs import patch_diff
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program, Subject, subjects_of
from compilescope.change.repair.search.attempts import SearchStep, common_attempt, gains
from compilescope.change.repair.search.budget import Budget
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.proposer import OpenCause, ProposedPatch, RejectedPatch
from compilescope.change.repair.search.try_log import Tried, TryLog
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.repair.verification.proposal import (
    JudgedPatch,
    PatchRejected,
    ProposalJudge,
    patched_texts,
)
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.fix_search import FixAttempt, FixCheck, in_counts

MODEL_FIX = "model"
"""What a model's patch is called where a fix of ours has its id."""


def own_texts(program: Program) -> dict[str, str]:
    """The user's files below the working folder that are modules: no links that lead out of it."""
    top = os.path.realpath(program.root)
    found = {}
    for file in program.own_files:
        real = os.path.realpath(file)
        path = os.path.normpath(file)
        inside = real.startswith(os.path.join(top, "")) and path.startswith(
            os.path.join(os.path.normpath(program.root), "")
        )
        if not (inside and path.endswith(".py") and path.isprintable()) or os.path.islink(path):
            continue
        try:
            found[path] = program.text(file)
        except Refused:
            continue
    return found


class ProposedSteps:
    """The causes that are left, one after the other."""

    def __init__(
        self,
        bench: Workbench,
        options: SearchOptions,
        log: TryLog,
        budget: Budget,
        *,
        main: str,
        light: bool,
    ) -> None:
        assert options.proposer is not None
        self._bench, self._options = bench, options
        self._log, self._budget = log, budget
        self._main, self._light = main, light
        self._proposer = options.proposer
        self._asked: set[str] = set()

    def next(self, step: SearchStep) -> SearchStep | None:
        """A version in which one cause more is mended; None: there is none left, or none holds."""
        captured = step.captured
        program = Program(captured.run, captured.digest, self._main, dict(step.version.files))
        texts = own_texts(program)
        if not texts:
            self._options.say("no file of the program may be changed: nobody was asked for a patch")
            return None
        judge = None
        for subject in subjects_of(program):
            name = subject.finding.fingerprint
            if name in self._asked or not self._options.wants(subject):
                continue
            self._asked.add(name)
            bench = self._bench.other(step.version)
            judge = judge or ProposalJudge(bench, step.version, texts, self._light)
            cause = OpenCause(subject, texts, self._attempts(name))
            found = self._mended(cause, judge)
            if found is not None:
                return found
        return None

    def _attempts(self, fingerprint: str) -> tuple[FixAttempt, ...]:
        return tuple(each for each in self._log.attempts() if each.fingerprint == fingerprint)

    def _mended(self, cause: OpenCause, judge: ProposalJudge) -> SearchStep | None:
        subject = cause.subject
        place = f"{os.path.basename(subject.file)}:{subject.line}"
        while not self._budget.is_spent:
            number = len(cause.rejected) + 1
            self._options.progress(f"{place}: asking {self._proposer.name}", 0, 0)
            proposal = self._proposer.propose(cause)
            if proposal is None:
                break
            self._options.progress(f"{place}: judging patch {number}", 0, 0)
            judged = self._judged(proposal, cause, judge)
            attempt = self._attempt(subject, judged)
            self._tell(attempt, judged.verification, number)
            if judged.verification.verdict == "verified":
                at = self._log.add(subject, attempt)
                tried = Tried(subject, _patch_of(judged, judge.before), judged.verification, at)
                self._log.keep(tried)
                captured = judged.verification.captured
                assert captured is not None
                return SearchStep(judged.version, captured, [tried], judged.verification)
            reason = judged.verification.reason
            cause = replace(cause, rejected=(*cause.rejected, RejectedPatch(proposal, reason)))
        if cause.rejected:
            self._log.add(subject, _summed(attempt, cause.rejected))
        return None

    def _judged(
        self, proposal: ProposedPatch, cause: OpenCause, judge: ProposalJudge
    ) -> JudgedPatch:
        subject = cause.subject
        try:
            if proposal.problem:
                raise PatchRejected(proposal.problem)
            texts = patched_texts(proposal.diff, cause.texts, cause.program.root)
        except PatchRejected as error:
            check = FixCheck("patch", "fail", str(error))
            found = Verification(verdict="rejected", reason=str(error), checks=(check,))
            return JudgedPatch(found, judge.before)
        gone = {subject.finding.fingerprint}
        return judge.judge(texts, gone, lambda found: gains(subject, found))

    def _attempt(self, subject: Subject, judged: JudgedPatch) -> FixAttempt:
        found = judged.verification
        is_verified = found.verdict == "verified"
        return msgspec.structs.replace(
            common_attempt(subject, [], self._log.round),
            fix=MODEL_FIX,
            title=f"patch by a language model ({self._proposer.name})",
            by=self._proposer.name,
            verdict=found.verdict,
            reason=found.reason,
            safe=True,
            breaks_after=found.after.breaks if is_verified else None,
            recompiles_after=found.after.recompiles if is_verified else None,
            checks=found.checks,
            inputs=found.inputs,
            compared=judged.compared,
            notes=found.notes,
            # What was not verified is shown to nobody.
            diff=patch_diff(subject, _patch_of(judged, None)) if is_verified else "",
        )

    def _tell(self, attempt: FixAttempt, found: Verification, number: int) -> None:
        at = f"{os.path.basename(attempt.file)}:{attempt.line} {attempt.rule or attempt.cause}"
        words = f"{at}: patch {number} by {self._proposer.name}: {attempt.verdict}"
        if attempt.verdict == "verified":
            self._options.say(f"{words} ({in_counts(found.before, found.after)})")
        else:
            self._options.say(f"{words} ({attempt.reason})")


def _patch_of(judged: JudgedPatch, before: Version | None) -> Patch:
    """`before`: only what differs from it."""
    known = before.files if before is not None else {}
    files = {path: text for path, text in judged.version.files.items() if known.get(path) != text}
    return Patch(files)


def _summed(attempt: FixAttempt, rejected: Sequence[RejectedPatch]) -> FixAttempt:
    """All of them as one attempt, with the reason of the last."""
    words = f"a patch by {attempt.by} was not verified: {attempt.reason}"
    if len(rejected) > 1:
        last = f"the last one: {attempt.reason}"
        words = f"{len(rejected)} patches by {attempt.by} were not verified, {last}"
    return msgspec.structs.replace(attempt, reason=words)


def proposed_steps(
    bench: Workbench,
    options: SearchOptions,
    log: TryLog,
    budget: Budget,
    step: SearchStep,
    *,
    main: str,
    light: bool,
) -> Iterator[SearchStep]:
    """What is verified of what `options.proposer` proposes, each on top of the one before."""
    if options.proposer is None:
        return
    asked = ProposedSteps(bench, options, log, budget, main=main, light=light)
    found: SearchStep | None = step
    while found is not None and (found := asked.next(found)) is not None:
        budget.found = True
        yield found
