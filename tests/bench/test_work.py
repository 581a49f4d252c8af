"""What a worker does, step by step, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

import torch

from compilescope.base.errors import ToolError
from compilescope.measure.bench import worker_tasks
from compilescope.measure.bench.protocol import Spec, WorkerRequest
from compilescope.measure.bench.worker_tasks import LEAST_S, CudaClock, WorkerTasks, survey, warm_up

pytestmark = pytest.mark.torch

MODEL = """
import torch

def build(batch=8):
    return torch.nn.Linear(32, 16), (torch.randn(batch, 32),)
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "line.py").write_text(MODEL)
    return f"{tmp_path / 'line.py'}:build"


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_a_model_is_built_called_timed_and_weighed(model: str, mode: Any) -> None:
    work = WorkerTasks()
    spec = Spec(model=model, mode=mode, batch=4, warmup=2)
    ready = work.do(WorkerRequest(verb="prepare", specs=(spec,)))
    assert (ready.parameters, ready.batch) == (32 * 16 + 16, 4)
    assert work.do(WorkerRequest(verb="first")).seconds > 0
    assert work.do(WorkerRequest(verb="warm")).calls >= 1
    assert work.do(WorkerRequest(verb="run")).ms > 0
    least = 4 * (32 * 16 + 16 + 4 * 32 + 4 * 16)  # Weights, input and output.
    peak = work.do(WorkerRequest(verb="memory")).bytes
    assert least <= peak < 20 * least


@pytest.mark.parametrize(
    ("seconds", "calls"),
    [
        # The later half counts: the first ones compile.
        ([3.0, 0.002, 0.001, 0.003], LEAST_S / 0.002),
        ([9.0, 0.0, 0.0], LEAST_S / 1e-7),  # Too quick for the clock.
        ([9.0, 2.0], 1),
    ],
)
def test_a_run_is_long_enough_for_the_clock(
    seconds: list[float], calls: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = iter(seconds)
    now = 0.0

    def step() -> None:
        nonlocal now
        now += next(taken)

    monkeypatch.setattr(worker_tasks, "clock", lambda: now)
    assert warm_up(step, "cpu", len(seconds)) == pytest.approx(calls, abs=1)


def test_names_are_checked_before_anything_is_built(model: str) -> None:
    with pytest.raises(ToolError, match="no backend named 'inducter'") as wrong:
        survey((Spec(model=model, backend="inducter"),))
    assert "inductor" in wrong.value.hint
    with pytest.raises(ToolError, match="no model named"):
        survey((Spec(model="brt"),))
    with pytest.raises(ToolError, match="dtype"):
        survey((Spec(model=model, dtype="float31"),))
    with pytest.raises(ToolError, match="'gpu' is not a device"):
        survey((Spec(model=model, device="gpu"),))
    with pytest.raises(ToolError):
        survey((Spec(model=model, constraints="no-such-device"),))


def test_a_survey_describes_the_machine(model: str) -> None:
    specs = (Spec(model=model), Spec(model=model, backend="mock", constraints="npu-a"))
    found = survey(specs)
    assert found.unavailable == {}
    assert found.machine.torch == torch.__version__
    assert found.machine.threads == torch.get_num_threads()


@pytest.mark.gpu
def test_a_gpu_is_timed_by_its_own_clock() -> None:
    clock = CudaClock()
    before = clock()
    torch.cuda._sleep(10_000_000)
    between = clock()
    assert between - before > 1e-3
    assert clock() - between < between - before
