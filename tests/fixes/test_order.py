"""The order of the fixes is what a person would sooner write, as measured on their examples."""

from __future__ import annotations

import difflib
import itertools

from compilescope.fixes.catalogue import all_fixes
from compilescope.fixes.fix import Fix

SMALL = 3
"""Lines of a diff: a statement with a condition around it."""


def _lines(fix: Fix) -> list[str]:
    """Of its largest example: what is removed and added."""
    diffs = [
        [
            line
            for line in difflib.unified_diff(each.bad.split("\n"), each.good.split("\n"), n=0)
            if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]
        for each in fix.examples
    ]
    return max(diffs, key=len, default=[])


def test_a_small_change_comes_before_a_custom_operator() -> None:
    fixes = [fix for fix in all_fixes() if fix.kind == "source" and fix.order < 100]
    wrong = [
        (large.id, small.id)
        for large, small in itertools.combinations(fixes, 2)
        if large.rules & small.rules
        and any("custom_op" in line for line in _lines(large))
        and len(_lines(small)) <= SMALL
        and not any("cond(" in line for line in _lines(small))
    ]
    assert not wrong


def test_what_reaches_further_comes_after_what_is_local() -> None:
    """A flag or a caller's change of anything comes after every exact change at the place."""
    far = {fix.id: fix.order for fix in all_fixes() if fix.kind == "config"}
    assert all(order >= 100 for order in far.values()), far


def test_scaffolds_come_last() -> None:
    scaffolds = [fix.order for fix in all_fixes() if fix.kind == "scaffold"]
    assert min(scaffolds) > max(fix.order for fix in all_fixes() if fix.kind == "source")


def test_a_print_for_eager_runs_comes_before_an_operator_and_a_flag() -> None:
    order = [fix.id for fix in all_fixes()]
    wanted = ["print-while-eager", "print-in-graph", "print-after-graph"]
    assert sorted(wanted, key=order.index) == wanted
