"""Every fix, by its own examples: it makes of `bad` what `good` says, and of `good` nothing.

That `good` also computes the same is shown by real searches in tests/repair/test_proofs.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from capabilities import expected
from compilescope.change.fixes.catalogue import all_fixes, fixes_answering, index
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.subject import Subject, subjects_of
from compilescope.knowledge.source.examples import Example, RefusalExample
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.bodies import GraphCaptured
from fixes.repertoire import example_name, holds, meant, program_of, refusals, subjects

pytestmark = pytest.mark.torch
EXAMPLES = [(fix, example) for fix in all_fixes() for example in fix.examples]
FEW_BY_DEFAULT = [
    pytest.param(*each, marks=() if at % 6 == 0 else pytest.mark.slow)
    for at, each in enumerate(EXAMPLES)
]
BY_DEFAULT = ("grad-mode-called", "module-unscripted", "where-for-buffer", "cond-for-if")
"""They look at what `self` holds, each in another way."""
OF_METHODS = [
    pytest.param(*each, marks=() if each[0].id in BY_DEFAULT else pytest.mark.slow)
    for each in EXAMPLES
    # That a module's number changed is told by the guard's text alone, where it says `self.`.
    if re.search(r"\bself\.", each[1].bad) and each[0].id != "unspecialised-ints"
]
LEAVES_SOME = {
    "raised-limit": "the calls that were left to eager mode are compiled too",
    "disable-helper": "the graph breaks where the function is called",
    "join-as-it-grows": "a list that is empty is compiled for alone",
    "dynamic-automatic": "the second size is compiled once more, for all that follow",
}
"""Fixes after which an example still has as many findings of theirs, and why."""
REFUSALS = [(fix, example) for fix in all_fixes() for example in fix.refusals]
FIRST_REFUSALS = [
    pytest.param(*each, marks=() if each[1] is each[0].refusals[0] else pytest.mark.slow)
    for each in REFUSALS
]


def _name(value: object) -> str | None:
    return value.id if isinstance(value, Fix) else None


@pytest.fixture(scope="module")
def lost_by(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Subject]]:
    """What a program loses; it runs once for all tests."""

    @cache
    def lost(text: str) -> list[Subject]:
        return subjects(tmp_path_factory.mktemp("program"), text)

    return lost


@pytest.mark.parametrize(("fix", "example"), EXAMPLES, ids=_name)
def test_it_does_what_its_example_says(
    fix: Fix, example: Example, lost_by: Callable[[str], list[Subject]]
) -> None:
    if not expected(example_name(fix, example)):
        assert not holds(fix, example, lost_by(example.bad))
        return
    found = meant(fix, lost_by(example.bad))
    assert found is not None, "the example and what the fix is for"
    patch = fix.propose(found)
    (text,) = patch.files.values()
    assert text == example.good
    assert not (fix.observable and patch.safe)


@pytest.mark.parametrize(("fix", "example"), FEW_BY_DEFAULT, ids=_name)
def test_twice_is_once(
    fix: Fix, example: Example, lost_by: Callable[[str], list[Subject]], tmp_path: Path
) -> None:
    """`good` is compiled, has fewer findings that the fix answers, and there it refuses them."""
    lost = [each for each in lost_by(example.bad) if fix.rules & each.keys]
    if not expected(example_name(fix, example)):
        assert not holds(fix, example, lost)
        return
    program = program_of(tmp_path, example.good)
    assert program.run.count(GraphCaptured), "nothing was compiled, so nothing was shown"
    left = [each for each in subjects_of(program) if fix.rules & each.keys]
    assert len(left) < len(lost) or fix.id in LEAVES_SOME
    for subject in left:
        with pytest.raises(Refused):
            fix.propose(subject.meant_for(fix.rules))


@pytest.mark.parametrize(("fix", "example"), OF_METHODS, ids=_name)
def test_a_method_may_call_its_object_as_it_likes(
    fix: Fix, example: Example, tmp_path: Path
) -> None:
    if not expected(example_name(fix, example)):
        pytest.skip("this torch does not show it")
    found = meant(fix, subjects(tmp_path, _renamed(example.bad)))
    assert found is not None
    (text,) = fix.propose(found).files.values()
    assert text == _renamed(example.good)


def _renamed(text: str) -> str:
    return re.sub(r"\bself(?=\b|_)", "this", text)


@pytest.mark.parametrize(("fix", "example"), FIRST_REFUSALS, ids=_name)
def test_it_refuses_with_the_reason(fix: Fix, example: RefusalExample, tmp_path: Path) -> None:
    all_found = subjects(tmp_path, example.program)
    if not expected(example_name(fix, example)):
        assert not holds(fix, example, all_found)
        return
    assert holds(fix, example, all_found), refusals(fix, all_found)


def test_fixes_describe_themselves() -> None:
    fixes = all_fixes()
    assert len({fix.id for fix in fixes}) == len(fixes)
    for fix in fixes:
        assert fix.examples, fix.id
        assert fix.why.endswith("."), fix.id
        assert fix.id == fix.id.lower() and " " not in fix.id


def test_each_fix_is_found_by_each_of_its_keys() -> None:
    for fix in all_fixes():
        for key in fix.rules:
            assert fix in fixes_answering({key}), (fix.id, key)
    assert fixes_answering({"no-such-rule"}) == []


def test_a_fix_that_the_index_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fix = all_fixes()[0]
    keys = frozenset(fix.rules)
    whole = fixes_answering(keys)
    for name in list(index()):
        monkeypatch.delitem(index(), name)
    assert fixes_answering(keys) == whole
    assert fixes_answering({"no-such-rule"}) == []
