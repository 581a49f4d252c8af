"""A search under a budget: what was not tried is said, what is proven is handed out."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.capture.target import Target
from compilescope.errors import ToolError
from compilescope.fixes.catalogue import all_fixes
from compilescope.repair.search.budget import SPENT
from compilescope.repair.search.hold_rates import HELD_OF_TRIED, hold_rate, likely_first
from compilescope.repair.search.searching import search
from compilescope.repair.search.wishes import Wishes
from compilescope.repair.trials.warm.parent import WarmParent

pytestmark = [pytest.mark.torch]
_PROGRAM = """import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        x = x * 2
    print("in f", tuple(x.shape))
    return x + 1


print(f(torch.ones(4)))
"""


@pytest.fixture
def target(tmp_path: Path) -> Target:
    (tmp_path / "program.py").write_text(_PROGRAM)
    return Target("script", (str(tmp_path / "program.py"),))


def test_what_was_not_tried_is_said(target: Target, warm: WarmParent) -> None:
    said: list[str] = []

    def listen(line: str) -> None:
        said.append(line)
        # From now on a fresh process is said to take so long that there is time for nothing else.
        warm.start_s = 1e6

    before = warm.start_s
    try:
        outcome = search(target, Wishes(timed=False, budget_s=3000.0, tell=listen), warm)
    finally:
        warm.start_s = before
    assert said == ["ran the program: 2 graph breaks"]
    assert [(each.fix, each.reason) for each in outcome.attempts] == [("", SPENT)] * 2
    assert outcome.verdict == "unverified" and not outcome.files
    assert outcome.notes == ("The time budget of 3000 s ran out: 2 causes were not fully tried.",)


def test_fixes_that_mostly_fail_come_last() -> None:
    fixes = all_fixes()
    poor = [fix for fix in fixes if hold_rate(fix.id) < 0.5]
    assert poor and len(poor) < len(fixes) / 4
    assert likely_first(fixes) == [fix for fix in fixes if fix not in poor] + poor
    assert set(HELD_OF_TRIED) <= {fix.id for fix in fixes}


def test_a_budget_that_is_too_short_for_one_run(target: Target, warm: WarmParent) -> None:
    with pytest.raises(ToolError, match="The time budget ran out before the program had run once"):
        search(target, Wishes(timed=False, budget_s=0.001), warm)


@pytest.mark.slow
def test_a_budget_that_is_enough_changes_nothing(target: Target, warm: WarmParent) -> None:
    said: list[str] = []
    outcomes = [
        search(target, Wishes(timed=False, budget_s=budget, tell=said.append), warm)
        for budget in (None, 3000.0)
    ]
    kept = [{each.fix for each in outcome.attempts if each.kept} for outcome in outcomes]
    assert kept[0] == kept[1] and len(kept[0]) == 2
    assert all(outcome.verdict == "verified" for outcome in outcomes)
    assert sum("verified in a fresh process" in line for line in said) == 2
