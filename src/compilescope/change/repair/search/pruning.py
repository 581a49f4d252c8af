"""Leaves out what a later fix has made unnecessary: a flag that was set for a number that is no
longer read, a rewrite in a function that is no longer compiled.

Each such fix was proven when it was found. Here a run shows that no more is lost without it; what
is left is then proven as a whole, as every result is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

import msgspec

from compilescope.base.patterns import late
from compilescope.base.processes.deadline import OutOfTime
from compilescope.change.fixes.catalogue import fixes_for
from compilescope.change.fixes.patch import merge
from compilescope.change.fixes.subject import Program, Subject, subjects_of
from compilescope.change.repair.search.at_once import changes_own_line, version_with
from compilescope.change.repair.search.attempts import (
    SearchStep,
    ending_of,
    environment_of,
    merged,
)
from compilescope.change.repair.search.budget import Budget
from compilescope.change.repair.search.options import SearchOptions, main_file
from compilescope.change.repair.search.placements import SHARE_ALIKE
from compilescope.change.repair.search.try_log import Tried, TryLog
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.losses import losses_of
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.version import Version
from compilescope.knowledge.analysis.findings import findings

_WORD = late(r"[^\W\d]\w*")
_LEAST_NAME = 4
"""Letters. Chosen: shorter ones are parts of many words."""


@dataclass
class Pruning:
    """What a search kept, with less and less of it. Each try is a run of the program, which ends
    as soon as it loses what the whole does not."""

    base: TrialBaseline
    whole: Sequence[SearchStep]
    progress: Callable[[str, int, int], None]
    steps: list[SearchStep] = field(init=False)
    """What is needed."""
    left_out: list[Tried] = field(default_factory=list)
    moved: Tried | None = None
    """What was found in a later round, and is now proposed for the program itself."""

    def __post_init__(self) -> None:
        self.steps = list(self.whole)

    def run(self) -> None:
        """Raises `OutOfTime`; what was found by then stays."""
        self._leave_out(unneeded_maybe(self.whole))

    def _leave_out(self, group: list[Tried]) -> None:
        """All of them, or those of each half."""
        if not group:
            return
        self.progress("is each of them needed", 0, 0)
        steps = without(self.whole, [*self.left_out, *group])
        seen = self._as_good(steps[-1].version) if steps is not None and len(steps) > 1 else None
        if steps is not None and seen is not None:
            self.steps = [*steps[:-1], replace(steps[-1], captured=seen)]
            self.left_out += group
        elif len(group) > 1:
            half = len(group) // 2
            self._leave_out(group[:half])
            self._leave_out(group[half:])

    def place_first(self, log: TryLog, main: str) -> None:
        """A later round may say what is compiled of a function that an earlier fix has made. Said
        of the program's own function, it may do without that fix."""
        late = _placed_in_new_function(self.whole)
        original = self.whole[0].captured
        program = Program(original.run, original.digest, main)
        found = [each for each in subjects_of(program) if late and _is_same(each, late.subject)]
        if late is None or len(found) != 1:
            return
        self.progress("is each of them needed", 0, 0)
        program = replace(program, facts=self.base.survey(found[0].watched))
        subject = replace(found[0], program=program)
        named = log.attempt(late).fix
        fix = next((each for each in fixes_for(subject) if each.id == named), None)
        patch = None
        with suppress(Exception):  # Refused, or a fault of a plugin: then it stays where it is.
            patch = fix.propose(subject.meant_for(fix.rules)) if fix is not None else None
        if patch is None:
            return
        moved = replace(late, subject=subject, patch=patch)
        made = f"def {late.subject.finding.function}("
        early = self.whole[1].kept
        makers = [each for each in early if made in each.patch.files.get(subject.file, "")]
        group = [moved, *(each for each in early if each not in makers)]
        kept = [group[number] for number in merged(program, group)[1]]
        version = version_with(self.base, program, kept)
        seen = self._as_good(version, renamed=True)
        if seen is not None:
            self.whole = self.steps = [self.whole[0], SearchStep(version, seen, kept)]
            self.left_out += [each for each in early if each not in kept]
            self.moved = moved

    def _as_good(self, version: Version, *, renamed: bool = False) -> CapturedRun | None:
        """A run that loses no more than one with all fixes; None where it does. `renamed`: causes
        have other names, as its functions have: they are only counted, and a few operators may be
        beside the graphs."""
        known = self.whole[-1].captured

        def worse(part: CapturedRun) -> bool:
            return not renamed and _loses_more(known, part)

        seen = self.base.bench.watch(version, light=self.base.light, enough=worse)
        if seen.is_part or worse(seen) or ending_of(seen) != ending_of(known):
            return None
        ours, theirs = (losses_of(each.digest, each.operators) for each in (seen, known))
        less = ours.every_call <= theirs.every_call and ours.avoidable <= theirs.avoidable
        most = theirs.operators * (SHARE_ALIKE if renamed else 1.0)
        return seen if less and ours.operators >= most else None


def prune(
    base: TrialBaseline,
    steps: Sequence[SearchStep],
    options: SearchOptions,
    log: TryLog,
    budget: Budget,
) -> Pruning:
    """As far as there is time for it."""
    pruning = Pruning(base, steps, options.progress)
    with suppress(OutOfTime), budget.searching():
        pruning.place_first(log, main_file(base.bench.target))
        pruning.run()
    return pruning


def unneeded_maybe(steps: Sequence[SearchStep]) -> list[Tried]:
    """What another fix can have made unnecessary, settings first.

    A fix that was found later was needed beside those before it. One that changes the line which
    breaks is needed as long as that line is compiled.
    """
    found: list[tuple[bool, Tried]] = []
    for at, (before, step) in enumerate(pairwise(steps), 1):
        later = [tried for each in steps[at:] for tried in each.kept]
        for tried in step.kept:
            if any(_names_again(before.version, tried, each) for each in later):
                continue
            others = [each for each in later if each is not tried]
            text = before.version.text_of(tried.subject.file) or ""
            own = changes_own_line(text, tried)
            if any(each.patch.leaves_graph for each in others) if own else others:
                found.append((own, tried))
    return [tried for _, tried in sorted(found, key=lambda each: each[0])]


def _placed_in_new_function(steps: Sequence[SearchStep]) -> Tried | None:
    """The one fix of later rounds, where it is about a function that was not there at first."""
    later = [tried for step in steps[2:] for tried in step.kept]
    if len(later) != 1 or not later[0].patch.leaves_graph:
        return None
    subject = later[0].subject
    text = steps[0].version.text_of(subject.file) or ""
    return later[0] if f"def {subject.finding.function}(" not in text else None


def _is_same(one: Subject, other: Subject) -> bool:
    """The same cause of the same line, wherever that is now."""
    mine, theirs = one.finding, other.finding
    same = mine.file == theirs.file and mine.source.strip() == theirs.source.strip()
    return same and mine.kind == theirs.kind and one.rule == other.rule


def _names_again(before: Version, tried: Tried, later: Tried) -> bool:
    """Does a later fix go by a name that this one made? Its own names are made of that one then."""
    known, made, used = (
        {word for text in texts for word in _WORD.findall(text)}
        for texts in (
            [before.text_of(file) or "" for file in {*tried.patch.files, *later.patch.files}],
            tried.patch.files.values(),
            later.patch.files.values(),
        )
    )
    names = {name for name in made - known if len(name) >= _LEAST_NAME}
    return any(name in word for word in used - known - names for name in names)


def without(steps: Sequence[SearchStep], left_out: Sequence[Tried]) -> list[SearchStep] | None:
    """The same steps, but for some of their fixes: what follows is moved to what is left. None
    where a later fix changes what one of them wrote. Only their versions are right: nothing ran."""
    numbers = {tried.number for tried in left_out}
    found = [steps[0]]
    for before, step in pairwise(steps):
        base = found[-1].version
        kept = [tried for tried in step.kept if tried.number not in numbers]
        files: Mapping[str, str] | None = step.version.files
        if len(kept) < len(step.kept):
            files = _merged(before.version, [tried.patch.files for tried in kept])
        files = _moved(files, before.version, base) if files is not None else None
        patches = [_moved(tried.patch.files, before.version, base) for tried in kept]
        if files is None:
            return None
        if not kept:
            continue
        fixes: list[Tried] = []
        for tried, texts in zip(kept, patches, strict=True):
            if texts is None:
                return None
            fixes.append(replace(tried, patch=msgspec.structs.replace(tried.patch, files=texts)))
        environment = {**base.environment, **environment_of(kept)}
        version = replace(base, files={**base.files, **files}, environment=environment)
        if version.key == step.version.key and len(kept) < len(step.kept):
            return None  # Its text is a part of another's.
        found.append(replace(step, version=version, kept=fixes, verification=None))
    return found


def _merged(base: Version, patches: Sequence[Mapping[str, str]]) -> dict[str, str] | None:
    """The texts of all of them; None where they do not go together."""
    bases = {file: base.text_of(file) or "" for texts in patches for file in texts}
    files, kept = merge(bases, patches)
    return files if len(kept) == len(patches) else None


def _moved(texts: Mapping[str, str], before: Version, base: Version) -> dict[str, str] | None:
    """Texts that were written for one version, for another; None where both change one line."""
    theirs = {file: base.text_of(file) or "" for file in {*before.files, *base.files}}
    files = _merged(before, [texts, theirs])
    return {file: files[file] for file in {*texts, *theirs}} if files is not None else None


def _loses_more(known: CapturedRun, seen: CapturedRun) -> bool:
    """Is there a cause that the whole does not have, or not so often?"""
    counts = {found.fingerprint: found.count for found in findings(known.digest)}
    new = findings(seen.digest)
    return any(found.count > counts.get(found.fingerprint, 0) for found in new)
