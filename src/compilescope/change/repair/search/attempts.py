"""The fixes of one cause, tried one after the other until one is proven; and the steps that come of
it: each version that was kept, and what it still loses.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import OutOfTime
from compilescope.base.processes.outcome import last_words
from compilescope.change.fixes.catalogue import fixes_for
from compilescope.change.fixes.diffs import patch_diff
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch, merge
from compilescope.change.fixes.subject import Program, Subject
from compilescope.change.repair.search.budget import Budget
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.try_log import BY_OTHERS, UNNECESSARY, Tried, TryLog, stated
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.losses import losses_of
from compilescope.change.repair.trials.recorded_runs import CapturedRun, Verification
from compilescope.change.repair.trials.verifier import verify
from compilescope.change.repair.trials.version import Version
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.record.fix_search import FixAttempt, FixLeft, in_counts

_logger = logging.getLogger(__name__)


_NO_GAIN = "it gains nothing: another cause takes its place"


def try_subject(
    subject: Subject,
    base: TrialBaseline,
    options: SearchOptions,
    log: TryLog,
    budget: Budget,
    *,
    keeping: bool = False,
    whole: bool = False,
) -> Tried | None:
    """The first fix that is proven alone, on top of the version that `base` stands for; else the
    first whose place another cause takes. Where time is short, those that failed before come
    last. `keeping`: those that let another break stay are tried too. `whole`: only those that
    leave nothing of the graph to eager execution."""
    refused: list[tuple[Fix, Refused]] = []
    followed: Tried | None = None
    tried_any = False
    fixes = fixes_for(subject)
    ordered = log.likely_first(fixes) if budget.seconds is not None else fixes
    for place, fix in enumerate(ordered):
        if not options.wants_fix(fix.id):
            continue
        if budget.is_spent:
            log.skip(_nothing(subject, refused, log.round), subject, begun=tried_any)
            return None
        if not log.is_new(subject, fix.id):
            tried_any = True
            continue
        patch = _proposed(fix, subject, options)
        if isinstance(patch, Refused):
            refused.append((fix, patch))
            continue
        tried_any = True
        if (patch.keeps_break and not keeping) or (whole and patch.leaves_graph):
            continue
        try:
            verification = _verified(subject, patch, base)
        except OutOfTime:
            log.skip(_nothing(subject, refused, log.round), subject, begun=True)
            return None
        if patch.states and verification.verdict == "verified":
            patch = _naming_exact(subject, patch, ordered[place + 1 :], options)
            verification = msgspec.structs.replace(verification, reason=patch.states)
        attempt = _attempt(subject, fix, patch, verification, refused, log.round)
        number = log.add(subject, attempt)
        _tell(attempt, verification, options)
        if verification.verdict == "verified":
            budget.found = True
            return Tried(subject, patch, verification, number)
        if is_hindered(subject, verification) and not patch.needs_human:
            log.hindered.append(Tried(subject, patch, verification, number, alone=False))
        lone = verification.reason == _NO_GAIN and subject.finding.kind == "recompile"
        if lone and followed is None and not patch.needs_human:
            followed = Tried(subject, patch, verification, number, alone=False)
    if not tried_any and log.is_new(subject, ""):
        attempt = _nothing(subject, refused, log.round)
        log.add(subject, attempt)
        options.tell(_in_one_line(attempt))
    return followed


def _proposed(fix: Fix, subject: Subject, options: SearchOptions) -> Patch | Refused:
    """A patch, or why there is none."""
    try:
        patch = fix.propose(subject.meant_for(fix.rules))
        _check_options(patch, subject, options)
    except Refused as reason:
        return reason
    except Exception:  # A fix is a plugin: a fault in one is no end of the search.
        _logger.debug("fix %s failed on %s", fix.id, subject.finding.title, exc_info=True)
        return NotMeant(f"the fix {fix.id} failed here")
    return patch


@dataclass(frozen=True)
class ProposedFix:
    """A patch for one cause, before anything has run."""

    subject: Subject
    fix: Fix
    patch: Patch
    refused: tuple[tuple[Fix, Refused], ...] = ()
    """Those that come before it and do not fit."""
    later: Sequence[Fix] = ()
    """Those that come after it."""

    @property
    def key(self) -> tuple[str, str]:
        return self.subject.finding.fingerprint, self.fix.id


def first_proposal(
    subject: Subject, options: SearchOptions, log: TryLog, *, whole: bool = False
) -> ProposedFix | None:
    """What would be tried first, if it was not tried before. Those that mostly hold do not come
    first here, whatever the time: how often a fix holds alone says little of it among others.
    `whole`: of those that leave nothing of the graph to eager execution."""
    refused: list[tuple[Fix, Refused]] = []
    ordered = fixes_for(subject)
    for place, fix in enumerate(ordered):
        if not options.wants_fix(fix.id):
            continue
        if not whole and not log.is_new(subject, fix.id):
            return None
        patch = _proposed(fix, subject, options)
        if not isinstance(patch, Refused):
            if whole and patch.leaves_graph:
                continue
            if patch.keeps_break:
                return None  # What removes that break comes first.
            return ProposedFix(subject, fix, patch, tuple(refused), ordered[place + 1 :])
        refused.append((fix, patch))
    return None


def log_member(
    proposal: ProposedFix, verification: Verification, options: SearchOptions, log: TryLog
) -> Tried:
    """A fix that was proven with others, in one version."""
    subject, fix, patch = proposal.subject, proposal.fix, proposal.patch
    if patch.states:
        patch = _naming_exact(subject, patch, proposal.later, options)
    verification = msgspec.structs.replace(verification, reason=patch.states)
    attempt = _attempt(subject, fix, patch, verification, list(proposal.refused), log.round)
    number = log.add(subject, attempt)
    _tell(attempt, verification, options)
    return Tried(subject, patch, verification, number)


def log_left_out(tried: Tried, options: SearchOptions, log: TryLog) -> None:
    """A fix that the others make unnecessary."""
    log.leave_out(tried)
    options.tell(f"{_in_one_line(log.attempt(tried))}: left out, as {UNNECESSARY}")


def try_placement(
    fix: Fix, subject: Subject, base: TrialBaseline, options: SearchOptions, log: TryLog
) -> Tried | None:
    """Another way to say what is compiled, whatever is said of it; None where it does not fit, or
    was tried before."""
    if not log.is_new(subject, fix.id):
        return None
    patch = _proposed(fix, subject, options)
    if isinstance(patch, Refused):
        return None
    verification = _verified(subject, patch, base)
    attempt = _attempt(subject, fix, patch, verification, [], log.round)
    number = log.add(subject, attempt)
    _tell(attempt, verification, options)
    return Tried(subject, patch, verification, number)


def _naming_exact(
    subject: Subject, patch: Patch, later: Sequence[Fix], options: SearchOptions
) -> Patch:
    """Its statement says what to ask for where the price of a small change is too high."""
    words = f"{patch.states} {_exact_beside(subject, later, options)}".strip()
    return msgspec.structs.replace(patch, states=words)


def _exact_beside(subject: Subject, later: Sequence[Fix], options: SearchOptions) -> str:
    """The first fix that states no change."""
    for fix in later:
        if not options.wants_fix(fix.id):
            continue
        try:
            patch = fix.propose(subject)
        except Exception:  # Refused, or a fault of a plugin: then it is no offer.
            continue
        if patch.safe:
            return f"`--rule {fix.id}` tries one that states no change."
    return ""


def _tell(attempt: FixAttempt, verification: Verification, options: SearchOptions) -> None:
    """What was verified stays on the screen, with what it wins."""
    if attempt.verdict == "verified":
        won = in_counts(verification.before, verification.after)
        options.say(f"{_in_one_line(attempt)} ({won})")
    else:
        options.tell(_in_one_line(attempt))


def _in_one_line(attempt: FixAttempt) -> str:
    at = f"{os.path.basename(attempt.file)}:{attempt.line} {attempt.rule or attempt.cause}"
    if not attempt.fix:
        return f"{at}: no automatic fix ({attempt.reason})"
    reason = f" ({attempt.reason})" if attempt.verdict != "verified" else ""
    return f"{at}: {attempt.fix}: {attempt.verdict}{reason}"


def _is_far(refused: tuple[Fix, Refused]) -> bool:
    """Is the fix made for another shape of code?"""
    return isinstance(refused[1], NotMeant)


def _check_options(patch: Patch, subject: Subject, options: SearchOptions) -> None:
    if options.safe_only and not patch.safe:
        raise Refused(f"--safe-only: {patch.states or patch.needs_human}")
    theirs = [file for file in patch.files if not subject.program.is_own(file)]
    if options.own_only and theirs:
        raise Refused("it changes an installed package, which only --script can do")


def _verified(subject: Subject, patch: Patch, base: TrialBaseline) -> Verification:
    verification = verify(
        base.bench,
        base,
        base.version.with_patch(patch),
        gone={subject.finding.fingerprint},
        patch_allows=patch.allows,
        states=patch.states,
    )
    if verification.verdict == "verified" and not gains(subject, verification):
        return msgspec.structs.replace(verification, verdict="rejected", reason=_NO_GAIN)
    if patch.needs_human and not patch.run_answers and verification.verdict == "verified":
        return msgspec.structs.replace(verification, verdict="unverified", reason=patch.needs_human)
    return verification


def verify_all(
    base: TrialBaseline, version: Version, members: Sequence[Tried | ProposedFix]
) -> Verification:
    """A version with the patches of all of them."""
    return verify(base.bench, base, version, **asked_of(members, members))


def asked_of(
    members: Sequence[Tried | ProposedFix], first: Sequence[Tried | ProposedFix]
) -> dict[str, Any]:
    """What a version with all their patches is asked: what must be gone, of those that come first
    (later ones may be about what these uncovered), and what may differ."""
    return {
        "gone": {each.subject.finding.fingerprint for each in first},
        "patch_allows": frozenset().union(*(each.patch.allows for each in members)),
        "states": " ".join(each.patch.states for each in members if each.patch.states),
    }


def loses_no_more(one: Verification, other: Verification) -> bool:
    """Is what the first leaves lost no more than what the second leaves?"""
    mine, theirs = one.after, other.after
    return mine.every_call <= theirs.every_call and mine.avoidable <= theirs.avoidable


def gains(subject: Subject, verification: Verification) -> bool:
    """Is less lost than before, or more of the program captured?"""
    old, new = verification.before, verification.after
    if subject.finding.kind == "recompile":
        # A function that is given up loses more than any number of versions that are reused.
        if new.every_call[:2] != old.every_call[:2]:
            return new.every_call[:2] < old.every_call[:2]
        # As many compilations for other reasons are no gain.
        return new.avoidable < old.avoidable and new.recompiles < old.recompiles
    fewer = (new.breaks, new.eager, new.failures) < (old.breaks, old.eager, old.failures)
    return fewer or new.operators > old.operators


def _attempt(
    subject: Subject,
    fix: Fix,
    patch: Patch,
    verification: Verification,
    refused: list[tuple[Fix, Refused]],
    number: int,
) -> FixAttempt:
    ran = verification.ended
    states = stated(patch, verification)
    noted = verification.verdict == "verified" and verification.reason == patch.states
    return msgspec.structs.replace(
        common_attempt(subject, refused, number),
        fix=fix.id,
        title=fix.title,
        verdict=verification.verdict,
        reason=states if noted else verification.reason,
        safe=patch.safe,
        states=states,
        breaks_before=verification.before.breaks,
        breaks_after=verification.after.breaks if ran else None,
        recompiles_before=verification.before.recompiles,
        recompiles_after=verification.after.recompiles if ran else None,
        checks=verification.checks,
        inputs=verification.inputs,
        notes=verification.notes,
        uncovered=verification.uncovered,
        diff=patch_diff(subject, patch),
    )


def _nothing(subject: Subject, refused: list[tuple[Fix, Refused]], number: int) -> FixAttempt:
    """The reason that matters is that of the first fix that fits but for one thing."""
    near = [str(each) for _, each in refused if not isinstance(each, NotMeant)]
    asked = _by_name(subject)
    reason = asked or next(iter(near), "") or _by_hand(subject) or "no fix exists for this"
    return msgspec.structs.replace(common_attempt(subject, refused, number), reason=reason)


def _by_name(subject: Subject) -> str:
    """A fix that is for its user to ask for."""
    for fix in fixes_for(subject):
        if fix.by_name:
            with suppress(Exception):  # Refused, or a fault of a plugin: then it is no offer.
                patch = fix.propose(subject.meant_for(fix.rules))
                return f"`--rule {fix.id}`: {fix.title}. {patch.states}"
    return ""


def _by_hand(subject: Subject) -> str:
    """What the rule leaves to a person: a decision first, such as to leave it as it is."""
    told = sorted(subject.finding.remedy, key=lambda each: each.kind != "judgement")
    return told[0].text if told else ""


def common_attempt(subject: Subject, refused: list[tuple[Fix, Refused]], number: int) -> FixAttempt:
    finding = subject.finding
    seen = subject.program.digest
    return FixAttempt(
        rule=subject.rule or finding.rule_id,
        finding=finding.kind,
        cause=finding.title,
        fingerprint=finding.fingerprint,
        file=finding.file,
        line=finding.line,
        function=finding.function,
        source=finding.source.strip(),
        fix="",
        title="",
        verdict="unverified",
        reason="",
        safe=False,
        states="",
        kept=False,
        own=subject.program.is_own(finding.file),
        breaks_before=len(seen.sites),
        breaks_after=None,
        recompiles_before=sum(frame.count for frame in seen.recompiles),
        recompiles_after=None,
        because=finding.because[0] if finding.because and number == 1 else "",
        refused=tuple((fix.id, str(why)) for fix, why in sorted(refused, key=_is_far)),
        round=number,
    )


@dataclass(frozen=True)
class SearchStep:
    """A version that was kept, and what a run of it showed."""

    version: Version
    captured: CapturedRun
    kept: list[Tried] = field(default_factory=list)
    verification: Verification | None = None
    """Against the step before."""


def step_of(version: Version, kept: list[Tried], verification: Verification) -> SearchStep | None:
    if verification.verdict != "verified" or verification.captured is None:
        return None
    return SearchStep(version, verification.captured, kept, verification)


def ending_with(steps: Sequence[SearchStep], proof: Verification) -> list[SearchStep]:
    """Steps that were proven as a whole, the last one as the proof saw it."""
    last = steps[-1]
    return [*steps[:-1], replace(last, captured=proof.captured or last.captured)]


def values_for(original: TrialBaseline, steps: Sequence[SearchStep]) -> TrialBaseline | None:
    """Whose values the next version has to have: the original's, so that nothing is left to replay
    when all is held against it in the end. Not where they may differ: what one fix states is not
    to excuse another."""
    stated = any(tried.patch.allows for step in steps for tried in step.kept)
    return None if stated else original.values


def has_vanished(subject: Subject, verification: Verification) -> bool:
    """Has another fix mended this one too?"""
    return verification.captured is not None and not shows(verification.captured, subject)


def is_hindered(subject: Subject, verification: Verification) -> bool:
    """Was a fix that does what it is for rejected for a new cause?"""
    failed = {check.name for check in verification.checks if check.verdict == "fail"}
    return bool(failed) and failed <= BY_OTHERS and has_vanished(subject, verification)


def shows(seen: CapturedRun, subject: Subject) -> bool:
    """Is its cause there?"""
    return subject.finding.fingerprint in {found.fingerprint for found in findings(seen.digest)}


def environment_of(kept: Sequence[Tried | ProposedFix]) -> dict[str, str]:
    return {name: value for tried in kept for name, value in tried.patch.environment.items()}


def ending_of(captured: CapturedRun) -> tuple[int, bool]:
    return captured.exit_status, captured.timed_out


def losses_in_words(captured: CapturedRun) -> str:
    lost = losses_of(captured.digest, captured.operators)
    parts = [
        f"{number} {name if number == 1 else f'{name}s'}"
        for number, name in (
            (lost.breaks, "graph break"),
            (lost.recompiles, "recompile"),
            (lost.failures, "failed compilation"),
        )
        if number
    ]
    return ", ".join(parts) or "nothing to fix"


def still_lost(captured: CapturedRun, attempts: Sequence[FixAttempt]) -> list[FixLeft]:
    """What is still lost, with the best reason that there is."""
    reasons = {each.fingerprint: each.reason for each in attempts if not each.kept}
    told = []
    for finding in findings(captured.digest):
        place = f"{finding.file}:{finding.line}"
        why = reasons.get(finding.fingerprint) or finding.first_step or finding.message
        told.append(FixLeft(place, why))
    return told


def error_words(captured: CapturedRun) -> str:
    return last_words(captured.stderr).rstrip(".")[:200] or "no error message"


def merged(
    program: Program, won: Sequence[Tried | ProposedFix]
) -> tuple[dict[str, str], list[int]]:
    """The texts with all patches that do not touch the same lines as one before them."""
    bases = {file: program.text(file) for tried in won for file in tried.patch.files}
    return merge(bases, [tried.patch.files for tried in won])


def best_first(program: Program, won: list[Tried]) -> list[Tried]:
    """Where two change the same lines, the one that leaves less has them: a check with its message
    in the graph, and not the message alone."""
    if len(merged(program, won)[1]) == len(won):
        return won
    return sorted(won, key=_left_over)


def _left_over(tried: Tried) -> int:
    after = tried.verification.after
    return after.breaks + after.recompiles + after.failures


def look_over(first: CapturedRun, limit_s: float) -> list[str]:
    """At the first run: what a user should know of it. Raises `ToolError` where it is none."""
    if first.timed_out:
        raise ToolError(
            f"The program did not finish within {limit_s:g} s.",
            hint="Raise --limit, or use a shorter run of the program.",
        )
    seen = first.digest
    if not seen.torch and not seen.graphs and first.exit_status:
        raise ToolError(
            f"The program failed before it reached torch: {error_words(first)}.",
            hint="Does it run without compilescope, with the same arguments?",
        )
    notes = []
    if first.exit_status and not seen.failures:
        how = f"with status {first.exit_status}"
        how = how if first.exit_status > 0 else f"on signal {-first.exit_status}"
        notes.append(
            f"The program itself ends {how} ({error_words(first)}), so nothing could be verified."
        )
    if not seen.graphs and not findings(seen):
        notes.append(
            "Nothing was compiled. If the program never calls torch.compile, --compile-all "
            "compiles its outermost modules."
        )
    return notes
