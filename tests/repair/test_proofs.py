"""Every example of every fix, really run: `good` loses less than `bad` and does the same.

The same trials as in a search: the program that a fix's example gives as `bad` is captured and
replayed, `good` is held against it, with what the fix states allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from capabilities import expected
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program, Subject, subjects_of
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.verifier import verify
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.source.examples import Example
from fixes.repertoire import example_name, meant

pytestmark = [pytest.mark.torch]
QUICK = 29
"""One in so many is proven by default."""
OTHERWISE = {
    # A person has to decide: the recompiles stay, and what is compiled is kept for more of them.
    "raised-limit/0": ("rejected", "there is still: "),
}
"""Examples, as `fix-id/number`, that are not verified, by design, and the verifier's reason."""
NO_LOSS = {"no-grad-around/0", "mark-dynamic/3"}
"""Examples in which a program has two modes, or comes back to a first size, each with its graph:
nothing is lost."""


def _examples() -> Iterator[object]:
    number = 0
    for fix in all_fixes():
        for count, example in enumerate(fix.examples):
            name = f"{fix.id}/{count}"
            marks = [] if number % QUICK == 0 else [pytest.mark.slow]
            number += 1
            yield pytest.param(fix, example, count, id=name, marks=marks)


def _proposed(
    fix: Fix, there: bool, bench: Workbench, before: TrialBaseline, file: Path
) -> tuple[Subject, Patch] | None:
    """What the fix makes of the program, with what a search would know of its values; None where
    this torch loses nothing there."""
    seen = before.captured
    program = Program(seen.run, seen.digest, str(file))
    program = replace(program, facts=bench.survey(Version(), before.places))
    found = [each for each in subjects_of(program) if fix.rules & each.keys]
    assert bool(found) == there, seen.stderr.decode()
    subject = meant(fix, [replace(each, program=program) for each in found])
    return None if subject is None else (subject, fix.propose(subject))


@pytest.mark.parametrize(("fix", "example", "count"), list(_examples()))
def test_good_is_proven_against_bad(
    fix: Fix, example: Example, count: int, tmp_path: Path, warm: WarmParent
) -> None:
    file = tmp_path / "program.py"
    file.write_text(example.bad)
    with Workbench(Target("script", (str(file),)), warm=warm, limit_s=280) as bench:
        before = TrialBaseline(bench)
        there = expected(example_name(fix, example)) and f"{fix.id}/{count}" not in NO_LOSS
        proposed = _proposed(fix, there, bench, before, file)
        if proposed is None:
            return
        subject, patch = proposed
        found = verify(
            bench,
            before,
            Version({str(file): example.good}, patch.environment),
            gone={subject.finding.fingerprint},
            patch_allows=patch.allows,
            states=patch.states,
        )
    verdict, reason = OTHERWISE.get(f"{fix.id}/{count}", ("verified", ""))
    told = [f"{check.name}: {check.words}" for check in found.checks if check.verdict != "pass"]
    assert found.verdict == verdict, (found.reason, told)
    assert reason in found.reason


def test_the_list_of_what_is_otherwise_is_current() -> None:
    known = {f"{fix.id}/{n}" for fix in all_fixes() for n in range(len(fix.examples))}
    assert set(OTHERWISE) <= known
    assert all(verdict != "verified" and reason for verdict, reason in OTHERWISE.values())
