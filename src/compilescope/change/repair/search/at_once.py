"""What is first proposed for each graph break, all in one version, once a fix was proven alone.

A large program takes minutes for each trial, so its breaks are not tried one by one where they need
not be: one version with the proven fix and all first proposals, held against the original by the
same checks, proves them all. Where it does not hold, those that it shows to be at fault are left
out, or half of them; what is left is the search one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from compilescope.change.fixes.patch import Patch, hunks
from compilescope.change.fixes.subject import Program
from compilescope.change.repair.search.attempts import (
    ProposedFix,
    environment_of,
    merged,
    shows,
    verify_all,
)
from compilescope.change.repair.search.try_log import Tried
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.value_checks import check_branches
from compilescope.change.repair.trials.version import Version, changes_between
from compilescope.knowledge.analysis.findings import findings

_MOST_TRIES = 2
"""Of groups in a round: all, and those that were not at fault. Chosen: a group that does not hold
then costs as much as it could spare."""


@dataclass(frozen=True)
class TriedGroup:
    """Proposals that were tried together, and what came of it."""

    version: Version
    first: Tried
    """What was proven before."""
    proposals: tuple[ProposedFix, ...]
    """The others."""
    verification: Verification

    @property
    def is_proven(self) -> bool:
        return self.verification.verdict == "verified"

    @property
    def all(self) -> list[Tried | ProposedFix]:
        return [self.first, *self.proposals]


@dataclass
class Grouping:
    """Remembers, over the rounds of a search, what did not hold in a group."""

    progress: Callable[[str, int, int], None]
    _at_fault: set[tuple[str, str]] = field(default_factory=set)

    def try_all(
        self, base: TrialBaseline, program: Program, first: Tried, proposals: Sequence[ProposedFix]
    ) -> TriedGroup | None:
        """As many of the proposals as hold together with `first`; None where none does."""
        group = self._eligible(program, first, proposals)
        for number in count(1):
            if not group or number > _MOST_TRIES:
                return None
            self.progress(f"{len(group) + 1} fixes at once", 0, 0)
            held = self._tried(base, program, first, group)
            failed = held if not held.is_proven else self._failing_strictly(base, program, held)
            if failed is None:
                return self._without_idle(base, program, held)
            at_fault = blamed(base, failed.proposals, failed.verification)
            self._at_fault |= {each.key for each in at_fault}
            left = [each for each in group if each not in at_fault]
            group = left if at_fault else group[: len(group) // 2]
        return None

    def _failing_strictly(
        self, base: TrialBaseline, program: Program, held: TriedGroup
    ) -> TriedGroup | None:
        """What one patch states, such as another exception, was not held against any of them: those
        that state nothing have to hold by themselves. None where they do."""
        strict = [each for each in held.proposals if not each.patch.allows]
        if not strict or not any(each.patch.allows for each in held.all):
            return None
        self.progress(f"{len(strict)} of them by themselves", 0, 0)
        if not held.first.patch.allows:
            found = self._tried(base, program, held.first, strict)
        else:
            version = version_with(base, program, strict)
            verification = verify_all(base, version, strict)
            found = TriedGroup(version, held.first, tuple(strict), verification)
        return found if not found.is_proven else None

    def _eligible(
        self, program: Program, first: Tried, proposals: Sequence[ProposedFix]
    ) -> list[ProposedFix]:
        """For graph breaks alone: what makes a function recompile is often gone with them. Of two
        breaks of one line the second may be caused by the first."""
        lines = {(first.subject.file, first.subject.line)}
        found: list[ProposedFix] = []
        stated = first.patch.allows
        for each in proposals:
            place = (each.subject.file, each.subject.line)
            texts = [first.patch.files, *(other.patch.files for other in found)]
            fits = each.subject.finding.kind == "break" and not each.patch.needs_human
            # What one states would not be held against the other.
            alike = not each.patch.allows or not stated or each.patch.allows == stated
            known = place in lines or each.key in self._at_fault
            if fits and alike and each.patch.files not in texts and not known:
                stated = stated or each.patch.allows
                lines.add(place)
                found.append(each)
        numbers = merged(program, [first, *found])[1]
        return [found[number - 1] for number in numbers if number]

    def _tried(
        self, base: TrialBaseline, program: Program, first: Tried, group: Sequence[ProposedFix]
    ) -> TriedGroup:
        version = version_with(base, program, [first, *group])
        verification = verify_all(base, version, [first, *group])
        return TriedGroup(version, first, tuple(group), verification)

    def _without_idle(
        self, base: TrialBaseline, program: Program, held: TriedGroup
    ) -> TriedGroup | None:
        """Without those whose break is gone also without them."""
        needed = list(held.proposals)
        for each in held.proposals:
            if changes_own_line(program.text(each.subject.file), each):
                continue
            others = [other for other in needed if other is not each]
            self.progress("is each of them needed", 0, 0)
            without = version_with(base, program, [held.first, *others])
            seen = base.bench.watch(
                without,
                light=base.light,
                enough=lambda part: shows(part, each.subject),  # noqa: B023
            )
            if not shows(seen, each.subject) and not seen.exit_status:
                needed = others
        if len(needed) == len(held.proposals):
            return held
        if not needed:
            return None
        again = self._tried(base, program, held.first, needed)
        return again if again.is_proven else held


def version_with(
    base: TrialBaseline, program: Program, group: Sequence[Tried | ProposedFix]
) -> Version:
    files, _ = merged(program, group)
    return Version(
        {**base.version.files, **files},
        {**base.version.environment, **environment_of(group)},
    )


def changes_own_line(text: str, proposal: Tried | ProposedFix) -> bool:
    """Then the line that breaks is there as long as nobody else changes it: the patch is needed.
    `text`: of its file, before any patch."""
    subject = proposal.subject
    new = proposal.patch.files.get(subject.file)
    return new is not None and any(
        each.start < subject.line <= each.end for each in hunks(text, new)
    )


def blamed(
    base: TrialBaseline, group: Sequence[ProposedFix], verification: Verification
) -> list[ProposedFix]:
    """Those that a version shows to be at fault: their break is still there, a line that they
    wrote breaks, fails or stands in the traceback, or their branch was not taken both ways."""
    failed = next(check for check in verification.checks if check.verdict != "pass")
    if failed.name == "branches":
        return [each for each in group if not _branches_taken(base, each.patch)]
    after = verification.captured
    if after is None:
        return []
    new = findings(after.digest)
    if failed.name == "gone":
        left = {found.fingerprint for found in new}
        return [each for each in group if each.subject.finding.fingerprint in left]
    old = {found.fingerprint for found in findings(base.captured.digest)}
    lines = {found.source.strip() for found in new if found.fingerprint not in old}
    if failed.name == "exit":
        lines |= {line.strip() for line in after.stderr.decode(errors="replace").splitlines()}
    written = [(each, set(_added(base, each.patch))) for each in group]
    return [each for each, added in written if added & (lines - {""})]


def _branches_taken(base: TrialBaseline, patch: Patch) -> bool:
    changes = changes_between(base.values.version, base.version.with_patch(patch))
    checks, _ = check_branches(base.values, changes)
    return all(check.verdict == "pass" for check in checks)


def _added(base: TrialBaseline, patch: Patch) -> Iterator[str]:
    for file, text in patch.files.items():
        known = base.version.text_of(file) or ""
        for each in hunks(known, text):
            yield from (line.strip() for line in each.lines)


def together_words(others: int) -> str:
    return f"verified together with {'1 other fix' if others == 1 else f'{others} other fixes'}"
