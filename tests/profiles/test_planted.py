"""Slowness planted in programs on the CPU is named first, with its line."""

from __future__ import annotations

import importlib.util
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.analysis.step_causes import steps_json  # noqa: E402

_BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "planted_slowness.py"
SIZE = 512


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


Model = Callable[[Any], Any]


def float64(model: Model) -> None:
    weight = torch.ones(SIZE, SIZE, dtype=torch.float64)
    x = model(torch.ones(SIZE, SIZE))
    torch.matmul(x.double(), weight)  #: here


LARGE = torch.ones(4 * SIZE, 4 * SIZE)


def copy(model: Model) -> None:
    model(LARGE.t().contiguous()[:2])  #: here


def uncompiled(model: Model) -> None:
    x = model(torch.ones(SIZE, SIZE))
    torch.matmul(torch.matmul(torch.matmul(x, x), x), x)  #: here


def python(model: Model) -> None:
    model(torch.ones(2))
    time.sleep(0.05)  #: here


class Slow(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.05)
        return torch.ones(2)


def data(model: Model) -> None:
    for batch in torch.utils.data.DataLoader(Slow()):
        model(batch)


PARAMETERS = [torch.nn.Parameter(torch.ones(2)) for _ in range(200)]
OPTIMIZER = torch.optim.Adam(PARAMETERS, foreach=False)
for parameter in PARAMETERS:
    parameter.grad = torch.ones(2)


def optimizer(model: Model) -> None:
    model(torch.ones(2))
    OPTIMIZER.step()


def _marked(step: Callable[[Model], None]) -> list[int]:
    lines, first = inspect.getsourcelines(step)
    return [n for n, line in enumerate(lines, first) if line.rstrip().endswith("#: here")]


@pytest.mark.parametrize("step", [float64, copy, uncompiled, python, data, optimizer])
def test_named_first(step: Callable[[Model], None]) -> None:
    with compilescope.capture(profile=2) as seen:
        model = torch.compile(lambda x: x.relu(), backend="eager")
        for _ in range(14):
            step(model)
    assert not seen.digest.faults
    (told,) = steps_json(seen.run)
    assert told["reason"] == ""
    first = told["causes"][0]
    assert first["cause"] == step.__name__
    if marked := _marked(step):
        assert (first["line"], Path(first["file"]).name) == (marked[0], Path(__file__).name)
    assert sum(part["share"] for part in told["parts"]) == pytest.approx(1, rel=0.02)


def scaled(model: Model) -> None:
    x = torch.ones(SIZE, SIZE, requires_grad=True)
    (model(x) * 2.0 / 3.0).mean().backward()


def test_a_number_of_python_is_no_float64() -> None:
    with compilescope.capture(profile=2) as seen:
        model = torch.compile(lambda x: x.relu(), backend="eager")
        for _ in range(14):
            scaled(model)
    (told,) = steps_json(seen.run)
    assert [cause["cause"] for cause in told["causes"]][:1] == ["uncompiled"]
    assert "float64" not in [cause["cause"] for cause in told["causes"]]


def test_a_program_that_ends_before_its_lines_are_known() -> None:
    with compilescope.capture(profile=2) as seen:
        model = torch.compile(lambda x: x.relu(), backend="eager")
        # As many as `There is no profile` asks for: the step with stacks is not among them.
        for _ in range(10):
            model(torch.ones(2))
    (told,) = steps_json(seen.run)
    assert told["reason"] == "" and told["step_ms"] is not None


def _benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("planted_slowness", _BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_has_its_programs() -> None:
    programs = _benchmark().planted_programs()
    assert len(programs) >= 15 and all(program.cause for program in programs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [program.file.stem for program in _benchmark().planted_programs() if not program.needs_cuda],
)
def test_planted_programs_on_the_cpu(name: str, tmp_path: Path) -> None:
    benchmark = _benchmark()
    [program] = [each for each in benchmark.planted_programs() if each.file.stem == name]
    told = benchmark.profile(program, tmp_path)
    assert benchmark.names_it(program, told), told
