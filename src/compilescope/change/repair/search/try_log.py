"""What a search tried: every attempt, in order, with what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from compilescope.change.fixes.diffs import patch_diff
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.repair.search.budget import CUT, SPENT
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.record.fix_search import FixAttempt, Times

UNNECESSARY = "the other fixes make it unnecessary"


@dataclass(frozen=True)
class Tried:
    """A fix that was proven alone; or, with `alone` False, that does what it is for while another
    cause takes the place of its own: that may be proven together with the other's."""

    subject: Subject
    patch: Patch
    verification: Verification
    number: int
    """Of its attempt."""
    alone: bool = True


BY_OTHERS = frozenset({"breaks", "recompiles", "eager", "operators"})
"""Checks that fail for what the rest of the program loses: once some of that is fixed, a fix that
they rejected may hold."""


@dataclass
class TryLog:
    """Every attempt, in order. A later round repeats only those that failed for what the rest of
    the program lost."""

    round: int = 1
    hindered: list[Tried] = field(default_factory=list)
    """Of this round: rejected, though their own causes are gone, for what the rest of the program
    lost then."""
    _attempts: list[FixAttempt] = field(default_factory=list)
    _done: set[tuple[str, str]] = field(default_factory=set)
    _again: dict[tuple[str, str], int] = field(default_factory=dict)
    """The round of those that may hold in a later one."""

    def is_new(self, subject: Subject, fix: str) -> bool:
        key = (subject.finding.fingerprint, fix)
        return key not in self._done and self._again.get(key, 0) < self.round

    def likely_first(self, fixes: Sequence[Fix]) -> list[Fix]:
        """In their own order, but for those that were rejected for other causes of this program at
        least twice more often than they held: they come last."""
        held: Counter[str] = Counter()
        for each in self.attempts():
            held[each.fix] += (each.verdict == "verified") - (each.verdict == "rejected")
        return sorted(fixes, key=lambda fix: held[fix.id] < -1)

    def begin_round(self, number: int) -> None:
        self.round = number
        self.hindered = []

    def add(self, subject: Subject, attempt: FixAttempt) -> int:
        key = (subject.finding.fingerprint, attempt.fix)
        failed = {check.name for check in attempt.checks if check.verdict == "fail"}
        if attempt.verdict == "rejected" and failed <= BY_OTHERS:
            self._again[key] = self.round
        else:
            self._done.add(key)
        self._attempts.append(attempt)
        return len(self._attempts) - 1

    def skip(self, attempt: FixAttempt, subject: Subject, *, begun: bool) -> None:
        """There was no time for it, or for all of it."""
        if self.is_new(subject, ""):
            reason = CUT if begun else SPENT
            self.add(subject, msgspec.structs.replace(attempt, reason=reason))

    def attempt(self, tried: Tried) -> FixAttempt:
        return self._attempts[tried.number]

    def keep(self, tried: Tried) -> None:
        self._change(tried.number, kept=True)

    def keep_joined(self, tried: Tried) -> None:
        """What gained nothing alone does with the others."""
        words = f"It gains only with the others. {tried.patch.states}".strip()
        self._change(tried.number, kept=True, verdict="verified", reason=words)

    def keep_with(self, tried: Tried, proof: Verification) -> None:
        """What was rejected for what another fix mends, or mends it: what both come to counts."""
        self.keep_joined(tried)
        self._change(
            tried.number,
            states=stated(tried.patch, proof),
            checks=proof.checks,
            inputs=proof.inputs,
            notes=proof.notes,
            uncovered=proof.uncovered,
            breaks_after=proof.after.breaks,
            recompiles_after=proof.after.recompiles,
        )

    def time(self, tried: Tried, times: Times) -> None:
        self._change(tried.number, times=times)

    def drop(self, tried: Tried, reason: str) -> None:
        self._change(tried.number, kept=False, reason=reason)

    def move(self, tried: Tried, proof: Verification) -> None:
        """It is now proposed for the program itself, and proven with what is kept beside it."""
        subject, patch = tried.subject, tried.patch
        states = stated(patch, proof)
        self._change(
            tried.number,
            file=subject.file,
            line=subject.line,
            function=subject.finding.function,
            states=states,
            reason=states,
            diff=patch_diff(subject, patch),
            breaks_before=proof.before.breaks,
            breaks_after=proof.after.breaks,
            recompiles_before=proof.before.recompiles,
            recompiles_after=proof.after.recompiles,
        )

    def leave_out(self, tried: Tried) -> None:
        """It is proven, and what was kept beside it does without it."""
        self._change(tried.number, kept=False, unneeded=True, reason=UNNECESSARY)

    def attempts(self) -> list[FixAttempt]:
        """A cause for which nothing fitted in one round and something did in a later one is told
        by the later one alone, and a fix that was tried again by its last try."""
        mended = {each.fingerprint for each in self._attempts if each.kept}
        last = {(each.fingerprint, each.fix): each for each in self._attempts}
        return [
            each
            for each in self._attempts
            if (each.fix or each.fingerprint not in mended)
            and last[each.fingerprint, each.fix] is each
        ]

    def _change(self, number: int, **fields: object) -> None:
        self._attempts[number] = msgspec.structs.replace(self._attempts[number], **fields)


def stated(patch: Patch, verification: Verification) -> str:
    """What the patch says that a user could notice, and what only running it shows."""
    before, after = verification.before, verification.after
    if not verification.ended:
        return patch.states
    said = [patch.states] if patch.states else []
    if fewer := max(before.operators - after.operators, 0):
        said.append(f"{fewer} fewer {'operator is' if fewer == 1 else 'operators are'} captured.")
    if more := max(after.recompiles - before.recompiles, 0):
        said.append(f"It costs {more} more {'compilation' if more == 1 else 'compilations'}.")
    return " ".join(said)
