"""The order of the fixes is what a person would sooner write, as measured on their examples."""

from __future__ import annotations

import difflib
import itertools

from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.fix import Fix
from compilescope.change.repair.search.options import SearchOptions

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
    # The flag holds for one kind of call, and what it changes is where a line comes.
    assert far.pop("print-after-graph") < 100
    assert all(order >= 100 for order in far.values()), far


def test_scaffolds_come_last() -> None:
    scaffolds = [fix.order for fix in all_fixes() if fix.kind == "scaffold"]
    assert min(scaffolds) > max(fix.order for fix in all_fixes() if fix.kind == "source")


def test_output_that_stays_comes_before_output_that_is_left_out() -> None:
    order = [fix.id for fix in all_fixes()]
    wanted = ["print-after-graph", "print-in-graph", "print-while-eager"]
    assert sorted(wanted, key=order.index) == wanted
    by_name = [fix.id for fix in all_fixes() if fix.by_name]
    assert by_name == ["print-while-eager"]
    assert not SearchOptions().wants_fix("print-while-eager")
    assert SearchOptions(rules=frozenset({"print-while-eager"})).wants_fix("print-while-eager")
