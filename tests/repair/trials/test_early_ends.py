"""Trials that end before their program does: as soon as their verdict is certain. And those that do
without Inductor."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.repair.trials.baseline import TrialBaseline, without_inductor
from compilescope.change.repair.trials.recorded_runs import Verification
from compilescope.change.repair.trials.verifier import verify
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.analysis.findings import findings

pytestmark = pytest.mark.torch
_ENDLESS = "import time\nwhile True:\n    time.sleep(0.01)\n"
_BREAKS = """import torch


@torch.compile(backend="eager")
def f(x):
    print("x")
    return x + 1


print(f(torch.ones(3)))
"""


def _tried(tmp_path: Path, warm: WarmParent, before: str, after: str) -> Verification:
    file = tmp_path / "program.py"
    file.write_text(before)
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        original = TrialBaseline(bench)
        names = {each.fingerprint for each in findings(original.captured.digest)}
        return verify(bench, original, Version({str(file): after}), gone=names)


def test_a_break_that_is_still_there_ends_the_trial(tmp_path: Path, warm: WarmParent) -> None:
    """The program of the trial has no end of its own."""
    found = _tried(tmp_path, warm, _BREAKS, f"{_BREAKS}\n{_ENDLESS}")
    assert found.verdict == "rejected" and not found.ended
    assert found.reason.startswith("on line 6 there is still: ")
    assert [check.name for check in found.checks] == ["gone"]


def test_a_trial_that_is_right_runs_to_its_end(tmp_path: Path, warm: WarmParent) -> None:
    after = _BREAKS.replace('    print("x")\n', "") + "\nprint('end')\n"
    found = _tried(tmp_path, warm, _BREAKS, after)
    assert found.ended and [check.name for check in found.checks if check.verdict != "pass"] == [
        "output"
    ]


def test_a_function_that_meets_the_limit_ends_the_trial(tmp_path: Path, warm: WarmParent) -> None:
    """It is called with another string each time, which no dynamic shape is for."""
    text = _BREAKS.replace("def f(x):", "def f(x, word=''):").replace("x + 1", "x + len(word)")
    calls = "for number in range(20):\n    f(torch.ones(3), str(number))\n"
    after = text.replace('    print("x")\n', "") + f"\n{calls}{_ENDLESS}"
    found = _tried(tmp_path, warm, text, after)
    assert found.verdict == "rejected" and not found.ended
    assert found.reason == "`f` now runs eagerly: recompile limit"


def test_what_capture_counts_does_not_hang_on_inductor(tmp_path: Path, warm: WarmParent) -> None:
    file = tmp_path / "program.py"
    file.write_text(_BREAKS.replace('(backend="eager")', ""))
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        original = TrialBaseline(bench)
        light = TrialBaseline(bench, values=original, light=True)
        assert light.counts == original.counts and light.loses_as(original.captured)
        assert not any(map(light.unsteady, ("exit", "losses", "output")))
        phases = light.captured.digest.phases_seconds
        assert not any(name.startswith("inductor") for name in phases)
        assert light.captured.stdout == original.captured.stdout


def test_a_program_without_inductor_is_run_as_it_is(tmp_path: Path, warm: WarmParent) -> None:
    file = tmp_path / "program.py"
    file.write_text(_BREAKS)
    with Workbench(Target("script", (str(file),)), warm=warm) as bench:
        original = TrialBaseline(bench)
        assert without_inductor(original) is original
