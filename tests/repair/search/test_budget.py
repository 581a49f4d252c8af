"""A search under a budget: what was not tried is said, what is proven is handed out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.subject import Program, Subject
from compilescope.change.repair.search.budget import CUT, SPENT, Budget
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.rounds import search
from compilescope.change.repair.search.try_log import TryLog
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.record.fix_search import FixAttempt, FixVerdict

pytestmark = [pytest.mark.torch]
_PROGRAM = """import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        x = x * 2
    shape = tuple(x.shape)
    print("in f", shape)
    return x + 1


print(f(torch.ones(4)))
"""


@pytest.fixture
def target(tmp_path: Path) -> Target:
    (tmp_path / "program.py").write_text(_PROGRAM)
    return Target("script", (str(tmp_path / "program.py"),))


class Named(NamedTuple):
    """What a log asks of a cause."""

    fingerprint: str


class Ending(Deadline):
    """Over when the test says so."""

    over = False

    @property
    def until(self) -> float:
        return -math.inf if self.over else super().until


def test_what_was_not_tried_is_said(target: Target, warm: WarmParent) -> None:
    said: list[str] = []
    deadline = Ending(3000.0)

    def listen(line: str) -> None:
        said.append(line)
        deadline.over = True

    outcome = search(target, SearchOptions(timed=False, deadline=deadline, tell=listen), warm)
    assert said == ["ran the program: 2 graph breaks"]
    assert [(each.fix, each.reason) for each in outcome.attempts] == [("", SPENT)] * 2
    assert outcome.verdict == "unverified" and not outcome.files
    assert outcome.notes == ("The time budget of 3000 s ran out: 2 causes were not fully tried.",)


def test_what_was_tried_in_part_is_not_called_untried(target: Target, warm: WarmParent) -> None:
    deadline = Ending(3000.0)

    def listen(line: str) -> None:
        deadline.over = ": rejected" in line

    outcome = search(target, SearchOptions(timed=False, deadline=deadline, tell=listen), warm)
    assert [each.verdict for each in outcome.attempts if each.fix] == ["rejected"]
    assert [each.reason for each in outcome.attempts if not each.fix] == [CUT, SPENT]
    assert outcome.notes == ("The time budget of 3000 s ran out: 2 causes were not fully tried.",)


def test_what_was_verified_is_handed_out_when_time_ends(target: Target, warm: WarmParent) -> None:
    told: list[str] = []
    said: list[str] = []
    deadline = Ending(3000.0)

    def hear(line: str) -> None:
        said.append(line)
        deadline.over = True

    options = SearchOptions(timed=False, deadline=deadline, tell=told.append, say=hear)
    outcome = search(target, options, warm)
    assert outcome.verdict == "verified" and outcome.files
    # The first is kept, though there was no time for the other.
    assert [each.reason for each in outcome.attempts if not each.fix] == [SPENT]
    assert len(said) == 1 and said[0].endswith(": verified (graph breaks 2 -> 1)")
    assert "The time budget of 3000 s ended the check in a fresh process." in outcome.notes
    assert "verified in a fresh process" not in told


class Taken(NamedTuple):
    """What a workbench's processes have taken."""

    start_s: float = 8.0
    watch_s: float = 10.0
    probe_s: float = 20.0


def test_each_stage_leaves_what_follows_it() -> None:
    budget = Budget(Deadline(600.0), cast(Workbench, Taken()))
    assert budget.reserve_s() == 0
    with budget.searching():
        assert budget.reserve_s() == 0  # Nothing is found that would need any time.
        budget.found = True
        assert budget.reserve_s() == pytest.approx(1.3 * (18 + 30))
        with budget.joining():
            assert budget.reserve_s() == pytest.approx(1.3 * 18)
    assert budget.reserve_s() == 0
    assert budget.allows(6) and not budget.allows(60)


def test_a_script_that_follows_has_its_share() -> None:
    budget = Budget(Deadline(600.0), cast(Workbench, Taken()), following=2)
    assert budget.reserve_s() == pytest.approx(1.3 * 36)


def test_fixes_that_mostly_failed_in_this_search_come_last() -> None:
    fixes = all_fixes()[:3]
    log = TryLog()

    def tried(cause: str, fix: Fix, verdict: FixVerdict) -> None:
        finding = cast(BreakFinding, Named(cause))
        attempt = FixAttempt(fix.id, "", verdict, fingerprint=cause)
        log.add(Subject(finding, cast(Program, None)), attempt)

    tried("a", fixes[0], "rejected")
    tried("a", fixes[1], "verified")
    assert log.likely_first(fixes) == [*fixes]  # Once is no rule.
    tried("b", fixes[0], "rejected")
    tried("b", fixes[1], "rejected")
    assert log.likely_first(fixes) == [*fixes[1:], fixes[0]]
    tried("c", fixes[0], "verified")
    assert log.likely_first(fixes) == [*fixes]


def test_a_budget_that_is_too_short_for_one_run(target: Target, warm: WarmParent) -> None:
    with pytest.raises(ToolError, match="The time budget ran out before the program had run once"):
        search(target, SearchOptions(timed=False, budget_s=1e-9), warm)


@pytest.mark.slow
def test_a_budget_that_is_enough_changes_nothing(target: Target, warm: WarmParent) -> None:
    said: list[str] = []
    outcomes = [
        search(target, SearchOptions(timed=False, budget_s=budget, tell=said.append), warm)
        for budget in (None, 3000.0)
    ]
    kept = [{each.fix for each in outcome.attempts if each.kept} for outcome in outcomes]
    assert kept[0] == kept[1] and len(kept[0]) == 2
    assert all(outcome.verdict == "verified" for outcome in outcomes)
    assert sum("verified in a fresh process" in line for line in said) == 2
