"""Breaks that torch reports without an id: fixes are found by what stands in the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from compilescope.change.fixes.catalogue import all_fixes, each_fix_for, fixes_for
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.breaks import BreakFinding
from fixes.repertoire import subjects

pytestmark = [pytest.mark.torch]
FIXES = {fix.id: fix for fix in all_fixes()}
FOR_EVERY_BREAK = ["compile-parts", "compile-modules", "disable-helper"]
"""They ask for a run."""


def unnamed(folder: Path, text: str) -> Subject:
    """As torch 2.11 reports `ExitStack.enter_context(torch.no_grad())`."""
    found = next(each for each in subjects(folder, text) if isinstance(each.finding, BreakFinding))
    finding = msgspec.structs.replace(
        found.finding, gb_id=None, rule=None, category="", gb_type="GradModeVariable() has no type"
    )
    return replace(found, finding=finding)


def test_those_that_see_what_they_change_are_tried(tmp_path: Path) -> None:
    fix = FIXES["with-for-exit-stack"]
    subject = unnamed(tmp_path, fix.examples[0].bad)
    tried = fixes_for(subject)
    assert fix in tried
    assert all(each.propose(subject).files for each in tried if each.id not in FOR_EVERY_BREAK)
    # What is only proposed needs a cause.
    assert [each.id for each in each_fix_for(subject)] == FOR_EVERY_BREAK


def test_what_has_a_cause_asks_for_its_own_fixes_alone(tmp_path: Path) -> None:
    subject = unnamed(tmp_path, FIXES["with-for-exit-stack"].examples[0].bad)
    known = replace(subject, finding=msgspec.structs.replace(subject.finding, gb_id="GB9999"))
    assert [each.id for each in fixes_for(known)] == FOR_EVERY_BREAK
