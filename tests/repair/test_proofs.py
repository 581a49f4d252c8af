"""Every example of every fix, really run: `good` loses less than `bad` and does the same.

The same trials as in a search: the program that a fix's example gives as `bad` is watched and
replayed, `good` is held against it, with what the fix states allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from compilescope.capture.target import Target
from compilescope.fixes.catalogue import all_fixes
from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Program, Subject
from compilescope.fixes.subjects import subjects_of
from compilescope.repair.trials.verifying import Baseline, verify
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.warm.parent import WarmParent
from compilescope.repair.trials.workbench import Workbench

pytestmark = [pytest.mark.torch]
QUICK = 9
"""One in so many is proven by default."""
OTHERWISE = {
    # What one call uses up cannot be given to a second one.
    "list-for-iterator/0": ("unverified", "is a zip"),
    "list-for-iterator/1": ("unverified", "is a generator"),
    # What a call leaves behind changes what the next one gives.
    "mark-dynamic/1": ("unverified", "gives something else when it is called again"),
    "outside-of-compiled/0": ("unverified", "gives something else when it is called again"),
    # A tensor where a number was, a module that is a script: no inputs can be called the same.
    "tensor-argument/0": ("unverified", "decay: TypeError"),
    "module-unscripted/0": ("unverified", "Net cannot be called again"),
    # No input was found for which the check fails.
    "async-assert/2": ("unverified", "was never false"),
    # A person has to decide: the recompiles stay, and what is compiled is kept for more of them.
    "raised-limit/0": ("rejected", "is still there"),
    # On a NaN the loop never ends.
    "while-loop/0": ("unverified", "replaying the original took more than"),
}
"""Examples, as `fix-id/number`, that are not verified, by design, and the verifier's reason."""
OPEN = {
    "where-for-return/1": "where it returned its argument itself, it returns a copy now",
    "masked-loop/0": "where it returned its argument itself, it returns a copy now",
    "cond-for-return/0": "where it returned its argument, nothing could be trained; now it can",
    "environment-switch/0": "the check that it switches off is missed where it would have raised",
    "config-field/0": "what the line left behind is not there any more",
    "cond-for-if/1": "whether both sides have the same shape cannot be told",
    "cond-for-if/0": "a weight of the side that is not taken gets a gradient",
    "warm-up/0": "what the first call alone did is not captured any more",
    "separate-argument/0": "other values for the two arguments that are one tensor",
    "converted-argument/1": "the region is called with another dtype",
    "cached-property-ahead/0": "the value is there before the call, not after it",
}
"""Examples that are rejected, and why: a search would not hand them out."""


def _examples() -> Iterator[object]:
    number = 0
    for fix in all_fixes():
        for count, example in enumerate(fix.examples):
            name = f"{fix.id}/{count}"
            marks = [] if number % QUICK == 0 else [pytest.mark.slow]
            if name in OPEN:
                marks.append(pytest.mark.xfail(reason=OPEN[name], strict=True))
            number += 1
            yield pytest.param(fix, example, count, id=name, marks=marks)


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmParent]:
    with WarmParent() as parent:
        yield parent


def _proposed(fix: Fix, bench: Workbench, before: Baseline, file: Path) -> tuple[Subject, Patch]:
    """What the fix makes of the program, with what a search would know of its values."""
    seen = before.watched
    program = Program(seen.run, seen.digest, str(file))
    program = replace(program, facts=bench.survey(Version(), before.places))
    found = [each for each in subjects_of(program) if fix.rules & each.keys]
    assert found, seen.stderr.decode()
    subject = replace(found[0], program=program)
    return subject, fix.propose(subject)


@pytest.mark.parametrize(("fix", "example", "count"), _examples())
def test_good_is_proven_against_bad(
    fix: Fix, example: FixExample, count: int, tmp_path: Path, warm: WarmParent
) -> None:
    file = tmp_path / "program.py"
    file.write_text(example.bad)
    with Workbench(Target("script", (str(file),)), warm=warm, limit_s=60) as bench:
        before = Baseline(bench)
        subject, patch = _proposed(fix, bench, before, file)
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
    assert {*OTHERWISE, *OPEN} <= known
    assert all(verdict != "verified" and reason for verdict, reason in OTHERWISE.values())
