"""What a comparison hands out: text, JSON, HTML, a record."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compilescope import KernelDiffHarness
from compilescope.base.errors import ToolError
from compilescope.record.bodies import TensorDiff
from compilescope.record.run import read_run
from diff import wrong_backends as wrong

pytestmark = pytest.mark.torch
X = torch.linspace(-2, 2, 32).reshape(4, 8)


@pytest.fixture(scope="module")
def report() -> Any:
    def infinite(outputs: list[Any]) -> list[Any]:
        return [outputs[0] + 0.1, outputs[1] / 0]

    harness = KernelDiffHarness(
        lambda x: (x.sin(), x.cos()), X, "waves", test_backend=wrong.changing(infinite)
    )
    return harness.compare()


def test_the_summary_names_what_differs(report: Any) -> None:
    text = report.summary()
    assert text.startswith("FAIL  waves: backend vs. eager")
    assert "output[0]" in text and "max_abs 0.1" in text
    assert str(report) == text


def test_the_json_is_strict_and_has_the_promised_keys(report: Any, tmp_path: Path) -> None:
    path = report.save_json(tmp_path / "deep" / "report.json")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    told = json.loads(Path(path).read_text(), parse_constant=refuse)
    assert {"verdict", "reason", "outputs", "gradients", "guilty", "compiles"} <= set(told)
    assert set(told["outputs"]) == {"output[0]", "output[1]"}
    assert told["outputs"]["output[0]"]["metrics"]["max_abs"] == pytest.approx(0.1)
    assert (told["verdict"], told["compiles"], told["gradients"]) == ("fail", 1, {})


def test_the_names_of_the_older_tool(report: Any) -> None:
    assert (report.total_tensors, report.passed_tensors, report.failed_tensors) == (2, 0, 2)
    assert [result.name for result in report.tensor_results] == ["output[0]", "output[1]"]
    assert report.model_name == "waves" and report.reference_backend == "eager"
    assert report.test_compile_time >= 0 and report.timestamp > 0


def test_the_record_can_be_read_again(report: Any, tmp_path: Path) -> None:
    run = read_run(report.save_run(tmp_path))
    diffs = [body for _, body in run.of(TensorDiff)]
    assert [diff.path for diff in diffs] == ["output[0]", "output[1]"]
    assert diffs[0].worst[0].index and diffs[0].shape == (4, 8)
    assert run.unread == 0 and run.cut_short is None
    assert "waves" in report._repr_html_()


def test_a_report_on_disk(tmp_path: Path) -> None:
    harness = KernelDiffHarness(nn.ReLU(), X, test_backend="eager")
    harness.compare(save_report=True, report_dir=str(tmp_path))
    [file] = tmp_path.glob("*.json")
    assert json.loads(file.read_text())["verdict"] == "pass"
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="Cannot write"):
        harness.compare(save_report=True, report_dir=str(tmp_path / "file"))


def test_inputs_in_every_form() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    for inputs in (X, (X,), [X], {"x": X}):
        assert KernelDiffHarness(twice, inputs, test_backend="eager").compare().overall_passed
    with pytest.raises(ToolError, match="not callable"):
        KernelDiffHarness(3, X)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="whole number"):
        KernelDiffHarness(twice, X, inputs=0)
    with pytest.raises(ToolError, match="no backend named 'inducto'"):
        KernelDiffHarness(twice, X, test_backend="inducto").compare()


def test_the_guilty_operation() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return (torch.sin(x) + 1).exp()

    backend = wrong.replacing(torch.sin, torch.cos)
    report = KernelDiffHarness(model, X, test_backend=backend).compare(localize=True)
    [found] = report.to_dict()["guilty"]
    assert {"node", "target", "file", "line", "stage"} <= set(found)
    assert found["file"].endswith("test_diff_report.py")
    assert "sin" in found["target"]
    assert report.compiles <= 2 * 2 + 8
    right = KernelDiffHarness(model, X, test_backend="eager").compare(localize=True)
    assert right.guilty == () and any("nothing to localize" in note for note in right.notes)


@pytest.mark.slow
def test_pictures_on_request(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    harness = KernelDiffHarness(
        lambda x: (x.sin(), x.sum()), X, test_backend=wrong.changing(lambda o: [o[0] + 1, o[1]])
    )
    report = harness.compare(generate_visualizations=True, report_dir=str(tmp_path))
    assert report.visualization_paths
    assert all(Path(path).stat().st_size > 1000 for path in report.visualization_paths)
    assert report.to_dict()["pictures"] == report.visualization_paths


def test_pictures_come_with_the_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    harness = KernelDiffHarness(torch.sin, X, test_backend=wrong.changing(lambda o: [o[0] + 1]))
    report = harness.compare(generate_visualizations=True, report_dir=str(tmp_path))
    told = json.loads(Path(report.report_path).read_text())
    assert Path(report.report_path).parent == tmp_path
    assert told["pictures"] == report.visualization_paths
    assert all(Path(path).stat().st_size > 1000 for path in report.visualization_paths)
    [line] = [line for line in report.summary().splitlines() if "wrote" in line]
    assert report.report_path in line and f"2 pictures in {tmp_path}" in line
    # Without matplotlib the comparison and its JSON are not lost.
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report = harness.compare(generate_visualizations=True, report_dir=str(tmp_path))
    assert json.loads(Path(report.report_path).read_text())["verdict"] == "fail"
    assert any("pip install 'compilescope[plots]'" in note for note in report.notes)


def test_the_json_by_its_older_keys(report: Any) -> None:
    told = report.to_dict()
    assert told["model_name"] == "waves" and told["overall_passed"] is False
    assert (told["total_tensors"], told["passed_tensors"], told["failed_tensors"]) == (2, 0, 2)
    first, second = told["tensor_results"]
    assert first["max_absolute_error"] == pytest.approx(0.1) and not first["passed"]
    assert second["max_absolute_error"] == "inf"
    assert report.passed is False and len(report.results) == 2


def test_a_quick_check() -> None:
    off = wrong.changing(lambda o: [o[0] + 1e-3])
    harness = KernelDiffHarness(torch.sin, X, test_backend=off)
    assert not harness.quick_check()
    assert harness.quick_check(atol=1e-2)
