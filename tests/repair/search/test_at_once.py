"""Once a fix holds alone, those of the other breaks join it; what is at fault is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program, subjects_of
from compilescope.change.repair.search.at_once import Grouping
from compilescope.change.repair.search.attempts import ProposedFix
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.rounds import search
from compilescope.change.repair.search.try_log import Tried
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

pytestmark = [pytest.mark.torch]
PROGRAM = """
import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 3:
        x = x * 2
    x = x / float(x.abs().max())
    if x.isnan().sum() > 7:
        x = x + 1
    return x


for size in (0.5, 1.0):
    print(f(torch.full((4,), size)).tolist())
"""
RULES = frozenset({"tensor-for-number", "where-for-if", "cond-for-if"})
"""Others leave the third condition to Python, which is proven."""


@pytest.mark.slow
def test_what_is_not_proven_does_not_keep_the_others_back(tmp_path: Path, warm: WarmParent) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    doing: list[str] = []
    options = SearchOptions(
        timed=False, limit_s=120, rules=RULES, progress=lambda what, done, total: doing.append(what)
    )
    outcome = search(Target("script", (str(path),)), options, warm)
    kept = [each for each in outcome.attempts if each.kept]
    wanted = {"if x.sum() > 3:", "x = x / float(x.abs().max())"}
    assert {each.source for each in kept} == wanted, outcome.attempts
    joined = [each for each in kept if "verified together with 1 other fix" in each.notes]
    assert len(joined) == 1, "the other one was verified before"
    assert "3 fixes at once" in doing and "2 fixes at once" in doing
    left = [each for each in outcome.attempts if "isnan" in each.source]
    assert left and not any(each.verdict == "verified" for each in left)
    assert any("was never true" in each.reason for each in left)
    assert outcome.verdict == "verified"


def test_a_cause_that_went_with_another_is_not_called_left(
    tmp_path: Path, warm: WarmParent
) -> None:
    """The `raise` breaks too; it is gone as soon as the check runs outside."""
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\n\n\n@torch.compile(backend='eager')\ndef f(x):\n"
        "    if (x < 0).any():\n        raise ValueError('negative')\n"
        "    return x.sqrt().sum()\n\n\n"
        "for value in (1.0, -1.0, 4.0):\n    try:\n        print(f(torch.full((3,), value)))\n"
        "    except ValueError as error:\n        print(error)\n"
    )
    outcome = search(Target("script", (str(path),)), SearchOptions(timed=False), warm)
    assert outcome.before.breaks > outcome.after.breaks == 0
    assert [each.fix for each in outcome.attempts if not each.kept and not each.fix] == []
    assert outcome.left == ()


NOISY = """
import random

import torch


@torch.compile(backend="eager")
def f(x):
    noisy = x + random.gauss(0.0, 0.01)
    y = x + 1
    if x.sum() > 3:
        y = y * 2
    return y, noisy


for size in (0.25, 0.5):
    print(f(torch.full((4,), size))[0].tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "factor", "held"),
    [("torch-random", 2, True), ("torch-random", 3, False), ("where-for-if", 2, True)],
)
def test_what_one_fix_states_does_not_excuse_another(
    tmp_path: Path, warm: WarmParent, first: str, factor: int, held: bool
) -> None:
    """Where random numbers may differ, values are not compared."""
    path = tmp_path / "program.py"
    path.write_text(NOISY)
    drawn = NOISY.replace("random.gauss(0.0, 0.01)", "torch.randn(()) * 0.01")
    branch = "    if x.sum() > 3:\n        y = y * 2\n"
    where = NOISY.replace(branch, f"    y = torch.where(x.sum() > 3, y * {factor}, y)\n")
    with Workbench(Target("script", (str(path),)), warm=warm) as bench:
        base = TrialBaseline(bench)
        program = Program(base.captured.run, base.captured.digest, str(path))
        breaks = [each for each in subjects_of(program) if each.finding.kind == "break"]
        draws, asks = sorted(breaks, key=lambda each: each.line)
        random_fix = next(each for each in all_fixes() if each.id == "torch-random")
        where_fix = next(each for each in all_fixes() if each.id == "where-for-if")
        stated = Patch({str(path): drawn}, allows=frozenset({"other-random-numbers"}))
        proven = Verification(verdict="verified")
        if first == "torch-random":
            tried = Tried(draws, stated, proven, 0)
            proposal = ProposedFix(asks, where_fix, Patch({str(path): where}))
        else:
            tried = Tried(asks, Patch({str(path): where}), proven, 0)
            proposal = ProposedFix(draws, random_fix, stated)
        found = Grouping(lambda *_: None).try_all(base, program, tried, [proposal])
    assert (found is not None) == held


def test_all_lines_stay_in_the_graph_rather_than_beside_it(warm: WarmParent) -> None:
    """Of the first line, only the fix that moves all of them out of the graph holds alone."""
    path = Path(__file__).parents[2] / "fixes" / "programs" / "two_checks_caught.py"
    outcome = search(Target("script", (str(path),)), SearchOptions(timed=False), warm)
    assert outcome.verdict == "verified" and outcome.after.breaks == 0
    kept = {each.fix: each.line for each in outcome.attempts if each.kept}
    assert "compile-parts" not in kept and kept, outcome.attempts
    # The flag is for a number that is no longer read in the graph.
    assert [each.fix for each in outcome.attempts if each.unneeded][:1] == ["capture-scalars"]
    assert not any("capture_scalar_outputs" in text for text in outcome.files.values())
    left_out = [each for each in outcome.attempts if each.fix == "compile-parts"]
    assert left_out and {each.verdict for each in left_out} == {"verified"}
    assert "another fix wins as much" in left_out[0].reason
