"""Every fix, by its own examples: it makes of `bad` what `good` says, and of `good` nothing.

That `good` is also faster to trust, that is that it loses nothing and computes the same, is shown
by real runs in test_proofs.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.fixes.catalogue import all_fixes
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Refused
from fixes.repertoire import subjects

pytestmark = pytest.mark.torch
EXAMPLES = [(fix, example) for fix in all_fixes() for example in fix.examples]
REFUSALS = [(fix, example) for fix in all_fixes() for example in fix.refusals]


def _name(value: object) -> str | None:
    return value.id if isinstance(value, Fix) else None


@pytest.mark.parametrize(("fix", "example"), EXAMPLES, ids=_name)
def test_it_does_what_its_example_says(fix: Fix, example: FixExample, tmp_path: Path) -> None:
    found = [each for each in subjects(tmp_path, example.bad) if fix.rules & each.keys]
    assert found, "the example does not lose what the fix is for"
    patch = fix.propose(found[0])
    (text,) = patch.files.values()
    assert text == example.good


@pytest.mark.parametrize(("fix", "example"), EXAMPLES, ids=_name)
def test_twice_is_once(fix: Fix, example: FixExample, tmp_path: Path) -> None:
    for subject in subjects(tmp_path, example.good):
        if fix.rules & subject.keys:
            with pytest.raises(Refused):
                fix.propose(subject)


@pytest.mark.parametrize(("fix", "example"), REFUSALS, ids=_name)
def test_it_refuses_with_the_reason(fix: Fix, example: RefusalExample, tmp_path: Path) -> None:
    found = [each for each in subjects(tmp_path, example.program) if fix.rules & each.keys]
    assert found, "the program does not lose what the fix is for"
    with pytest.raises(Refused, match=example.because):
        fix.propose(found[0])


def test_fixes_describe_themselves() -> None:
    fixes = all_fixes()
    assert len({fix.id for fix in fixes}) == len(fixes)
    for fix in fixes:
        assert fix.examples, fix.id
        assert fix.why.endswith("."), fix.id
        assert fix.id == fix.id.lower() and " " not in fix.id
