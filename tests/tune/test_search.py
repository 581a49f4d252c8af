"""A whole search, on a program whose slowness is planted, with candidates that take it away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compilescope.apps.cli.commands.tune.output import TuneRequest, deliver
from compilescope.base.processes.deadline import Deadline
from compilescope.change.fixes.patch import Patch
from compilescope.change.repair.delivery.emitter import plan_script
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import TuneResult
from compilescope.change.tune.search import tune
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.source.refusals import Refused

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1800)]

_PROGRAM = """
import time
import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="eager")
for epoch in range(2):
    for step in range(60):
        x = torch.randn(4, 8)
        time.sleep(0.03)  # one
        time.sleep(0.02)  # two
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
print("done")
"""


def _replacing(name: str, old: str, new: str, *, autotunes: bool = False) -> TuneCandidate:
    def propose(tuned: TunedProgram) -> Patch:
        text = tuned.program.text(tuned.program.main)
        if old not in text:
            raise Refused("there is no such text")
        return Patch({tuned.program.main: text.replace(old, new)})

    return TuneCandidate(id=name, title=name, price="", propose=propose, autotunes=autotunes)


# About 2 min.
def test_what_is_faster_and_right_is_combined_and_the_rest_is_told(tmp_path: Path) -> None:
    """What a busy machine lets the search see of it: `test_judging` has the verdicts of times, and
    `benchmarks/planted_tune.py` wants both sleeps found."""
    program = tmp_path / "train.py"
    program.write_text(_PROGRAM)
    candidates = (
        _replacing("first", "time.sleep(0.03)  # one", "pass"),
        _replacing("second", "time.sleep(0.02)  # two", "pass"),
        _replacing("wrong", "time.sleep(0.03)  # one", "x = x * 1.001"),
        _replacing("crash", "# two", "; raise ValueError('planted')"),
        _replacing("absent", "nowhere", ""),
    )
    result = tune(Target("script", (str(program),)), TuneOptions(jobs=3), candidates)
    verdicts = {each.candidate: each for each in result.attempts}
    assert result.outcome.step == "train.py:10"
    assert verdicts["wrong"].verdict != "verified" and verdicts["wrong"].numbers in ("fail", "")
    assert verdicts["crash"].verdict == "rejected" and "planted" in verdicts["crash"].reason
    assert verdicts["absent"].verdict == "refused"
    kept = [each.candidate for each in result.attempts if each.kept]
    assert set(kept) <= {"first", "second"}
    assert all(verdicts[name].verdict == "verified" for name in kept)
    assert all(verdicts[name].compile_seconds is not None for name in kept)
    assert (result.outcome.verdict == "verified") == bool(kept)
    assert result.outcome.diff.count("\n-        ") == len(kept)
    if kept:
        assert result.outcome.speedup is not None and result.outcome.speedup > 1
        _check_script(program, result)


def _check_script(program: Path, result: TuneResult) -> None:
    """It is measured by itself; one that is slower is taken back."""
    target, options = Target("script", (str(program),)), TuneOptions()
    asked = TuneRequest(target, options, str(program), False, False, plan_script(target, None))
    handed = deliver(asked, result)
    script = program.with_name("train_fixed.py")
    assert (handed.script is None) != script.exists(), handed
    if handed.script is not None:
        assert handed.proof is not None
        checks = {check.name: check for check in handed.proof.checks}
        assert checks["step"].verdict == "pass" and "speed" in checks
    script.unlink(missing_ok=True)
    slow = result.files[str(program)].replace("loss.backward()", "loss.backward(); time.sleep(0.2)")
    handed = deliver(asked, replace(result, files={str(program): slow}))
    assert handed.script is None and "not faster" in handed.problem
    assert not script.exists()


# About 3 min.
def test_one_that_never_gets_ready_costs_the_quick_ones_nothing(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(_PROGRAM)
    candidates = (
        _replacing("stuck", "for epoch", "time.sleep(10**6)\nfor epoch", autotunes=True),
        _replacing("first", "time.sleep(0.03)  # one", "pass"),
    )
    options = TuneOptions(jobs=2, budget_s=300, deadline=Deadline(300))
    result = tune(Target("script", (str(program),)), options, candidates)
    verdicts = {each.candidate: each for each in result.attempts}
    assert verdicts["first"].speedup is not None, verdicts
    assert verdicts["stuck"].verdict == "unverified"
    assert "its share of the time budget" in verdicts["stuck"].reason
