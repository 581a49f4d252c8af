"""Slowness planted in programs on the CPU: where it lies, found live; that it is named first, of
recorded times. `benchmarks/planted_slowness.py` has programs named live."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.knowledge.analysis.step_causes import steps_json  # noqa: E402
from compilescope.knowledge.profiles.calls import CallPlace, StepPlaces, read_places  # noqa: E402
from compilescope.record.bodies import StepsProfiled  # noqa: E402
from profiles.planted_steps import HERE, STEPS, Planted, marked_line, profiled  # noqa: E402
from profiles.traces import cpu_run  # noqa: E402

_BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "planted_slowness.py"


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


RECORDED = {
    "float64": [("float64", 52, 0.9157)],
    "copy": [("copy", 55, 0.971)],
    "uncompiled": [("uncompiled", 59, 0.9826)],
    "python": [("python", 63, 0.9973)],
    "data": [("data", None, 0.9911)],
    "optimizer": [("optimizer", None, 0.9729)],
    "scaled": [("uncompiled", 78, 0.8153), ("python", 76, 0.0797)],
}
"""All causes of each record: a line is that of the program when it was recorded."""


@pytest.mark.parametrize("name", STEPS)
def test_named_first(name: str) -> None:
    (told,) = steps_json(cpu_run(name))
    found = [(each["cause"], each["line"], round(each["share"], 4)) for each in told["causes"]]
    assert found == RECORDED[name]
    assert found[0][0] == ("uncompiled" if name == "scaled" else name)
    assert sum(part["share"] for part in told["parts"]) == pytest.approx(1)


class Seen(NamedTuple):
    told: dict[str, Any]
    places: StepPlaces

    def at(self, step: str) -> list[CallPlace]:
        """What the marked line calls."""
        line = (str(HERE), marked_line(step))
        return [
            place
            for place in self.places.calls
            if place.at is not None and (place.at.file, place.at.line) == line
        ]


@pytest.fixture(scope="module")
def seen() -> Seen:
    """Of a step with all of it, each in small."""
    run = profiled(Planted(size=4, large=4, nap_s=0.001).together)
    (told,) = steps_json(run)
    ((_, body),) = run.of(StepsProfiled)
    return Seen(told, read_places(run.artifacts.get(body.places)))


def test_the_whole_step_is_told(seen: Seen) -> None:
    assert seen.told["reason"] == ""
    parts = {part["part"] for part in seen.told["parts"]}
    assert {"guards", "operator", "data", "optimizer", "python"} <= parts
    assert sum(part["share"] for part in seen.told["parts"]) == pytest.approx(1)


def test_operators_have_the_lines_that_call_them(seen: Seen) -> None:
    assert [place.name for place in seen.at("uncompiled")] == ["aten::matmul"] * 3
    assert "aten::contiguous" in [place.name for place in seen.at("copy")]
    product = next(place for place in seen.at("float64") if place.name == "aten::matmul")
    assert product.dtypes == ("float64",) and product.flops == 2 * 4**3


def test_python_has_the_line_that_calls_it(seen: Seen) -> None:
    lines = {(line.at.file, line.at.line): line.calls for line in seen.places.lines}
    assert lines[str(HERE), marked_line("python")] == "sleep"


def test_a_number_of_python_is_no_float64(seen: Seen) -> None:
    assert [(place.name, place.dtypes) for place in seen.at("scaled")] == [
        ("aten::mul", ("float32",))
    ]
    backward = [place for place in seen.places.calls if place.within == "backward"]
    assert backward and {place.dtypes for place in backward} == {("float32",)}


def test_a_program_that_ends_before_its_lines_are_known() -> None:
    with compilescope.capture(profile=2) as capture:
        model = torch.compile(lambda x: x.relu(), backend="eager")
        # As many as `There is no profile` asks for: the step with stacks is not among them.
        for _ in range(10):
            model(torch.ones(2))
    (told,) = steps_json(capture.run)
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
    """Which cause comes first is up to the machine: the benchmark says that."""
    benchmark = _benchmark()
    [program] = [each for each in benchmark.planted_programs() if each.file.stem == name]
    told = benchmark.profile(program, tmp_path)
    assert told["reason"] == "" and told["step_ms"] > 0, told
