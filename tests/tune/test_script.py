"""A tuned script is run by itself, in a fresh process, before it is handed out."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.apps.cli.commands.tune.output import TuneRequest, _told, deliver
from compilescope.base.processes.deadline import Deadline, clock
from compilescope.change.repair.delivery.emitter import plan_script
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.outcome import TuneResult
from compilescope.instrument.recorder.target import Target
from compilescope.record.outcomes import TuneAttempt, TuneOutcome

pytestmark = [pytest.mark.torch, pytest.mark.timeout(900)]

_PROGRAM = """
import torch

f = torch.compile(lambda x: x * 2, backend="eager")
print("sum", f(torch.ones(3)).sum().item())
"""


def _request(program: Path, deadline: Deadline | None = None) -> tuple[TuneRequest, TuneResult]:
    program.write_text(_PROGRAM)
    target = Target("script", (str(program),))
    tuned = _PROGRAM.replace("x * 2", "x * 2.001")
    result = TuneResult(
        outcome=TuneOutcome(verdict="verified", reason="2.00x", step="train.py:5"),
        attempts=(TuneAttempt(candidate="x", title="y", verdict="verified", reason="", kept=True),),
        files={str(program): tuned},
        originals={str(program): _PROGRAM},
        main=str(program),
    )
    options = TuneOptions(deadline=deadline, limit_s=300)
    request = TuneRequest(target, options, str(program), False, False, plan_script(target, None))
    return request, result


@pytest.mark.slow
def test_it_is_run_and_may_print_other_numbers_but_is_not_verified_without_a_measurement(
    tmp_path: Path,
) -> None:
    """The whole proof is part of `test_search`."""
    asked, result = _request(tmp_path / "train.py")
    handed = deliver(asked, result)
    assert handed.proof is not None and handed.proof.verdict == "unverified", handed
    checks = {check.name: check.verdict for check in handed.proof.checks}
    assert checks.pop("speed") == "unknown"
    assert set(checks.values()) == {"pass"}
    assert handed.script == str(tmp_path / "train_fixed.py")
    assert "2.001" in Path(handed.script).read_text()
    assert "not verified by itself" in " ".join(_told(handed))


@pytest.mark.slow
def test_one_that_fails_by_itself_is_taken_back(tmp_path: Path) -> None:
    asked, result = _request(tmp_path / "train.py")
    other = "assert __file__.endswith('train.py')\n" + result.files[str(tmp_path / "train.py")]
    result.files[str(tmp_path / "train.py")] = other
    handed = deliver(asked, result)
    assert handed.script is None and "AssertionError" in handed.problem
    assert not (tmp_path / "train_fixed.py").exists()


def test_without_time_it_is_written_and_said_to_be_unverified(tmp_path: Path) -> None:
    over = Deadline(60, begun=clock() - 120)
    asked, result = _request(tmp_path / "train.py", over)
    handed = deliver(asked, result)
    assert handed.script is not None and handed.proof is not None
    assert "time budget ended" in " ".join(_told(handed))
