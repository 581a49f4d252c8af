"""Slowness planted in programs on the CPU: where it lies, found live; that it is named first, of
recorded times. `benchmarks/planted_slowness.py` has programs named live."""

from __future__ import annotations

import sys
from pathlib import Path
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

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import planted_slowness  # noqa: E402
from planted_removal import (  # noqa: E402
    Saving,
    Truth,
    as_json,
    measure,
    truth_of,
    versions,
)


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


PROGRAMS = {program.file.stem: program for program in planted_slowness.planted_programs()}


def test_the_benchmark_has_its_programs() -> None:
    pairs = [program for program in PROGRAMS.values() if program.is_pair]
    assert len(pairs) >= 16 and len(PROGRAMS) - len(pairs) >= 20
    for program in pairs:
        assert len(set(program.causes)) == 2 and set(program.lines) <= set(program.causes)
        text = program.file.read_text()
        assert all(text.count(f'planted("{cause}")') == 1 for cause in program.causes)


def _judged(*savings: Saving, first: str = "sync", line: int | None = None) -> bool:
    program = PROGRAMS["two_sync_float64"]
    [own] = program.lines["sync"]
    told = {
        "causes": [{"cause": first, "line": own if line is None else line}],
        "parts": [{"share": 0.4}, {"share": 0.61}],
    }
    return planted_slowness.Result(program, told, 0.0, Truth(10.0, savings)).is_named


def test_the_first_cause_is_the_one_whose_removal_saves_most() -> None:
    sync, float64 = Saving("sync", 4.0, 3.9, 4.1), Saving("float64", 1.0, 0.9, 1.1)
    assert _judged(sync, float64)
    assert not _judged(sync, float64, line=1)
    assert not _judged(float64._replace(ms=6.0, low=5.9, high=6.1), sync)
    assert not _judged(sync, float64, first="launches")
    # Nobody can say which: intervals that meet, and less than a hundredth of the step.
    assert _judged(float64._replace(ms=4.5, low=3.0, high=6.0), sync)
    assert _judged(float64._replace(ms=4.05, low=4.04, high=4.06), Saving("sync", 4.0, 4.0, 4.0))
    assert not _judged()  # Not measured.


def test_what_a_cause_costs_is_measured_by_its_removal(tmp_path: Path) -> None:
    """Programs that answer without a clock: 9 ms, each cause so much of it."""
    program, broken = tmp_path / "program.py", tmp_path / "broken.py"
    program.write_text(
        "import os, sys\n"
        "print('ready', flush=True)\n"
        "for n, _ in enumerate(sys.stdin):\n"
        "    left = {'': 9, 'sync': 8, 'copy': 4}[os.environ['WITHOUT']]\n"
        "    print('window', left + (n == 3), flush=True)\n"
    )
    broken.write_text("raise SystemExit('no device')\n")
    causes = ("sync", "copy")
    with versions([(program, causes), (broken, causes)], limit_s=600) as ready:
        truth = measure([each for each in ready if each.file == program])
        failed = measure([each for each in ready if each.file == broken])
    assert truth == Truth(9.0, (Saving("copy", 5.0, 5.0, 5.0), Saving("sync", 1.0, 1.0, 1.0)))
    assert not truth.is_tie and truth_of(as_json(truth)) == truth
    assert not failed.savings and failed.reason.endswith("it ended: no device")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name, program in PROGRAMS.items() if not program.needs_cuda],
)
def test_planted_programs_on_the_cpu(name: str, tmp_path: Path) -> None:
    """Which cause comes first is up to the machine: the benchmark says that."""
    told = planted_slowness.profile(PROGRAMS[name], tmp_path)
    assert told["reason"] == "" and told["step_ms"] > 0, told
