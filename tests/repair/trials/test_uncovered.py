"""Breaks that only the patched version shows: told with what hid them, or held against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.verifier import verify
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target

pytestmark = [pytest.mark.torch, pytest.mark.slow]

_HIDDEN = """import torch


def helper(x):
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()
    torch._dynamo.graph_break(msg="one")
    x = x * 3
    torch._dynamo.graph_break(msg="two")
    return x * 2


@torch.compile(backend="eager")
def f(x):
    return helper(x + 1).sin()


print(f(torch.ones(3)))
"""
_NOT_HIDDEN = """import torch

LOUD = False


@torch.compile(backend="eager")
def f(x):
    x = x + 1
    torch._dynamo.graph_break()
    x = x * 2
    if LOUD:
        torch._dynamo.graph_break(msg="one")
    x = x * 3
    if LOUD:
        torch._dynamo.graph_break(msg="two")
    return x


print(f(torch.ones(3)))
"""


def _verified(file: Path, before: str, after: str, warm: WarmParent) -> Verification:
    file.write_text(before)
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        baseline = TrialBaseline(bench)
        first = baseline.captured.digest.sites[0]
        return verify(bench, baseline, Version({str(file): after}), gone=[first.fingerprint])


def test_more_breaks_are_verified_with_what_hid_them(tmp_path: Path, warm: WarmParent) -> None:
    mended = _HIDDEN.replace("        torch._dynamo.graph_break()\n", "", 1)
    found = _verified(tmp_path / "program.py", _HIDDEN, mended, warm)
    assert found.verdict == "verified", found
    assert (found.before.breaks, found.after.breaks) == (1, 2)
    assert [each.line for each in found.uncovered] == [7, 9]
    assert all("helper was not traced: program.py:7" in each.why for each in found.uncovered)
    words = next(check.words for check in found.checks if check.name == "breaks")
    assert words.startswith("1 before, 2 after; newly visible: line 7")
    assert words.endswith("and 1 more")


def test_more_breaks_that_nothing_hid_are_held_against_it(tmp_path: Path, warm: WarmParent) -> None:
    mended = _NOT_HIDDEN.replace("torch._dynamo.graph_break()", "x = x.clone()")
    loud = mended.replace("LOUD = False", "LOUD = True")
    found = _verified(tmp_path / "program.py", _NOT_HIDDEN, loud, warm)
    assert found.verdict == "rejected", found
    assert "nothing shows" in found.reason and "1 graph breaks before, 2 after" in found.reason
    assert [each.why for each in found.uncovered] == ["", ""]
    quiet = _verified(tmp_path / "program.py", _NOT_HIDDEN, mended, warm)
    assert quiet.verdict == "verified" and not quiet.uncovered
