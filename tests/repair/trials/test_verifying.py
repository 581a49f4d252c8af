"""Verdicts on fixes written by hand: the good ones verified, the traps not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.verifier import verify
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.findings import findings
from repair.trials.cases import CASES, Case
from repair.trials.input_cases import CASES as INPUT_CASES
from repair.trials.list_cases import CASES as LIST_CASES
from repair.trials.state_cases import CASES as STATE_CASES

pytestmark = pytest.mark.torch


def _fingerprint(before: TrialBaseline, at: str) -> str:
    found = [one for one in findings(before.captured.digest) if at in one.source]
    assert found, before.captured.stderr.decode()
    return found[0].fingerprint


def _verify(file: Path, case: Case, **more) -> Verification:
    file.write_text(case.before)
    with Workbench(Target("script", (str(file),)), **more) as bench:
        before = TrialBaseline(bench)
        return verify(
            bench,
            before,
            Version({str(file): case.after}),
            gone=[_fingerprint(before, case.at)],
            patch_allows=frozenset(case.allows),
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [*CASES, *INPUT_CASES, *LIST_CASES, *STATE_CASES], ids=lambda case: case.name
)
def test_a_fix_by_hand(tmp_path: Path, case: Case, warm: WarmParent) -> None:
    file = tmp_path / "program.py"
    found = _verify(file, case, warm=warm)
    assert found.verdict == case.verdict, found
    wrong = " ".join(check.name for check in found.checks if check.verdict != "pass")
    assert case.reason in f"{found.reason} {wrong}"
    assert file.read_text() == case.before


_PROGRAM = """import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    print("mean", y.mean())
    return y + 1


print(f(torch.ones(4)))
"""
_BRANCH = "    if x.sum() > 0:\n        y = x * 2\n    else:\n        y = x - 1\n"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory, warm: WarmParent) -> Iterator[TrialBaseline]:
    """One original for several patches, as in a round of the search."""
    file = tmp_path_factory.mktemp("program") / "program.py"
    file.write_text(_PROGRAM)
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        yield TrialBaseline(bench)


@pytest.mark.slow
def test_a_good_patch_is_verified(before: TrialBaseline) -> None:
    file = before.bench.target.words[0]
    text = _PROGRAM.replace(_BRANCH, "    y = torch.where(x.sum() > 0, x * 2, x - 1)\n")
    gone = [_fingerprint(before, "if x.sum()")]
    found = verify(before.bench, before, Version({file: text}), gone=gone)
    assert found.verdict == "verified", found
    assert (found.before.breaks, found.after.breaks) == (2, 1)
    assert found.after.operators > found.before.operators
    assert found.captured is not None
    branches = next(check for check in found.checks if check.name == "branches")
    assert branches.words == "both sides of 1 branch were taken"


@pytest.mark.slow
def test_a_patch_that_leaves_the_break_is_rejected(before: TrialBaseline) -> None:
    file = before.bench.target.words[0]
    text = _PROGRAM.replace("y = x * 2\n", "y = 2 * x\n")
    gone = [_fingerprint(before, "if x.sum()")]
    found = verify(before.bench, before, Version({file: text}), gone=gone)
    assert found.verdict == "rejected"
    assert "there is still" in found.reason
