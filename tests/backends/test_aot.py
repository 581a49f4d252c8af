"""The AOTAutograd and Inductor backend: real kernels, every stage kept, both passes checked."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.dom import minidom

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope import (  # noqa: E402
    ConstraintError,
    DtypeConstraint,
    ShapeConstraint,
    UnsupportedOpsConstraint,
    aot_mock_backend,
)
from compilescope.backends.mock.backend import MadeRepros  # noqa: E402
from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.change.minify.violations.kinds import facts  # noqa: E402
from compilescope.record.bodies import Violation  # noqa: E402
from compilescope.record.graph import decode_graph  # noqa: E402
from minify.violation_scripts import violation_script  # noqa: E402

HERE = Path(__file__)
TRAINING = [
    "dynamo",
    "aot_joint",
    "aot_forward",
    "aot_backward",
    "post_grad.forward",
    "ir_pre_fusion.forward",
    "ir_post_fusion.forward",
    "kernels.forward",
    "post_grad.backward",
    "ir_pre_fusion.backward",
    "ir_post_fusion.backward",
    "kernels.backward",
]
INFERENCE = [
    "dynamo",
    "aot_inference",
    "post_grad.inference",
    "ir_pre_fusion.inference",
    "ir_post_fusion.inference",
    "kernels.inference",
]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (
        "MOCK_STRICT",
        "MOCK_ALIGNMENT",
        "MOCK_ALIGNMENT_DIMS",
        "MOCK_MAX_MEMORY",
        "MOCK_MAX_PEAK_MEMORY",
    ):
        monkeypatch.delenv(name, raising=False)
    log = logging.getLogger("compilescope.backends")
    before, log.disabled = log.disabled, True
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    log.disabled = before


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(8, 12)
        self.norm = torch.nn.LayerNorm(12)

    def forward(self, x: Any) -> Any:
        y = torch.nn.functional.gelu(self.fc(x))
        y = self.norm(y)
        return (y * y).sum(-1)


def line_of(text: str) -> int:
    lines = [line.strip() for line in HERE.read_text().splitlines()]
    return lines.index(text) + 1


def names(kept: Any) -> list[str]:
    return [stage.name for stage in kept.stages]


@pytest.fixture(scope="module")
def trained() -> Any:
    """One training step of one model; what was made of it."""
    if not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler for Inductor")
    log = logging.getLogger("compilescope.backends")
    before, log.disabled = log.disabled, True
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, x = Net(), torch.randn(4, 8)
    # Whatever torch has in its caches: the stages are real all the same.
    torch.compile(model)(x).sum().backward()
    model.zero_grad()
    torch._dynamo.reset()
    denied = UnsupportedOpsConstraint(["aten.mm", "aten.gelu"])
    backend = aot_mock_backend(strict=False, constraints=[denied, ShapeConstraint(8)])
    with compilescope.capture() as seen:
        result = torch.compile(model, backend=backend)(x)
        result.sum().backward()
    log.disabled = before
    return SimpleNamespace(model=model, x=x, backend=backend, result=result, seen=seen)


def test_it_computes_what_the_model_computes(trained: Any) -> None:
    wanted = Net()
    wanted.load_state_dict(trained.model.state_dict())
    result = wanted(trained.x)
    result.sum().backward()
    torch.testing.assert_close(trained.result, result)
    # The norm's backward cancels: where a gradient is near 0, its rounding is that of its parts.
    torch.testing.assert_close(
        trained.model.fc.weight.grad, wanted.fc.weight.grad, atol=1e-4, rtol=1.3e-6
    )


def test_training_keeps_every_stage_of_both_passes(trained: Any) -> None:
    (kept,) = trained.backend.graphs
    assert names(kept) == TRAINING
    assert kept.missing == {}
    assert kept.model == "Net"
    assert "torch._C._nn.gelu" in kept.text("dynamo")
    assert "tangents_1" in kept.text("aot_joint")
    assert "aten.addmm.default" in kept.text("aot_forward")
    assert "aten.mm.default" in kept.text("aot_backward")
    assert "SchedulerNode" in kept.text("ir_pre_fusion.forward")
    assert kept.text("ir_post_fusion.forward").count("FusedSchedulerNode") >= 1
    for stage in kept.stages:
        has_graph = not stage.stage.startswith(("ir_", "kernels"))
        assert (stage.graph is not None) == has_graph


def test_kernels_are_those_of_this_compilation(trained: Any) -> None:
    (kept,) = trained.backend.graphs
    assert {kernel.direction for kernel in kept.kernels} == {"forward", "backward"}
    for kernel in kept.kernels:
        assert kernel.language == "cpp"
        assert 'extern "C"' in kernel.source
        code = kept.text(f"kernels.{kernel.direction}")
        assert f"{kernel.name} = async_compile." in code
        assert f"{kernel.name}(" in code
    assert any("erf" in kernel.source for kernel in kept.kernels)


def test_forward_and_backward_are_checked_apart(trained: Any) -> None:
    (kept,) = trained.backend.graphs
    by_stage = {checked.stage: checked for checked in kept.checked}
    assert set(by_stage) == {"aot_forward", "aot_backward"}
    products = [each for each in by_stage["aot_backward"].errors if each.rule == "operators"]
    assert [each.op for each in products] == ["aten.mm.default"]
    assert products[0].line == line_of("y = torch.nn.functional.gelu(self.fc(x))")
    shapes = {each.line for each in by_stage["aot_forward"].errors if each.rule == "shape"}
    assert line_of("y = self.norm(y)") in shapes


def test_an_operator_that_inductor_takes_apart_is_refused_all_the_same(trained: Any) -> None:
    """A device is described in ATen operators: it is asked about those, as everywhere."""
    (kept,) = trained.backend.graphs
    forward = next(checked for checked in kept.checked if checked.stage == "aot_forward")
    refused = [each.op for each in forward.errors if each.rule == "operators"]
    assert refused == ["aten.gelu.default"]
    assert "aten.gelu" not in kept.text("aot_forward")
    # Its parts are marked in the drawing of what Inductor made of it.
    assert "aten.gelu.default" in kept.draw("aot_forward")


def test_every_violation_has_a_line_of_the_model(trained: Any) -> None:
    (kept,) = trained.backend.graphs
    source = HERE.read_text().splitlines()
    for checked in kept.checked:
        assert checked.found
        for each in checked.found:
            assert each.file == str(HERE)
            assert source[each.line - 1].strip() == each.source
    inputs = {each.op for each in kept.checked[0].found if each.op.startswith("parameter")}
    assert inputs <= {f"parameter {n}.{p}" for n in ("fc", "norm") for p in ("weight", "bias")}


def test_a_capture_gets_them_by_stage(trained: Any) -> None:
    stages = {body.stage for _, body in trained.seen.run.of(Violation)}
    assert stages == {"aot_forward", "aot_backward"}
    assert not trained.seen.digest.faults


def test_figures(trained: Any) -> None:
    (kept,) = trained.backend.graphs
    forward = kept.figures("aot_forward")
    assert forward.statistics.by_op["addmm"] == 1
    assert forward.statistics.flops.known == 2 * 4 * 8 * 12
    assert forward.statistics.dtypes == {"float32": forward.statistics.dtypes["float32"]}
    assert forward.statistics.parameters.known == 4 * (12 * 8 + 12 + 12 + 12)
    assert kept.figures("aot_backward").statistics.flops.known == 2 * 4 * 8 * 12
    assert forward.peak.peak_bytes >= forward.peak.inputs_bytes > 0
    with pytest.raises(ToolError, match="is not a graph"):
        kept.figures("kernels.forward")


def test_drawings_are_well_formed_and_mark_violations(trained: Any) -> None:
    (kept,) = trained.backend.graphs
    picture = minidom.parseString(kept.draw("aot_backward"))
    groups = picture.getElementsByTagName("g")
    assert len(groups) == len(kept["aot_backward"].graph.nodes)
    marked = [each for each in groups if "marked" in each.getAttribute("class")]
    assert any("aten.mm.default" in each.firstChild.firstChild.data for each in marked)


def test_everything_is_saved(trained: Any, tmp_path: Path) -> None:
    (kept,) = trained.backend.graphs
    root = trained.backend.save(tmp_path / "kept", drawings=True)
    folder = root / "0-Net"
    for stage in kept.stages:
        ending = "txt" if stage.stage.startswith("ir_") else "py"
        assert (folder / f"{stage.name}.{ending}").read_text() == kept.text(stage.name)
        if stage.graph is not None:
            assert decode_graph((folder / f"{stage.name}.json").read_text()) == stage.graph
            minidom.parse(str(folder / f"{stage.name}.svg"))
    sources = [file.read_text() for file in (folder / "kernels").rglob("*.cpp")]
    assert sorted(sources) == sorted(kernel.source for kernel in kept.kernels)
    about = json.loads((folder / "about.json").read_text())
    assert about["model"] == "Net"
    stages = {each["stage"] for each in about["violations"]}
    assert stages == {"aot_forward", "aot_backward"}
    assert about["figures"]["aot_forward"]["statistics"]["ops"] > 10


def test_an_unknown_stage_is_one_sentence(trained: Any) -> None:
    (kept,) = trained.backend.graphs
    with pytest.raises(ToolError) as error:
        kept.text("aot_inference")
    assert error.value.message == "Stage aot_inference was not kept."
    assert "aot_forward" in error.value.hint


def test_strict_raises_before_anything_is_lowered(cxx: None) -> None:
    scripts: list[str] = []

    def reproduce(judged: Any) -> MadeRepros:
        scripts.append(violation_script(judged))
        return MadeRepros("written")

    backend = aot_mock_backend(constraints=[UnsupportedOpsConstraint(["aten.mm"])])
    backend._reproduce = reproduce
    with pytest.raises(ConstraintError) as error:
        torch.compile(Net(), backend=backend)(torch.randn(4, 8))
    (only,) = error.value.violations
    assert (only.stage, only.op) == ("aot_backward", "aten.mm.default")
    assert "in the backward graph" in str(error.value)
    (kept,) = backend.graphs
    assert kept.refused
    assert names(kept) == TRAINING[:4]
    # The script is of what Dynamo caught, and comes to the same end.
    assert "torch._C._nn.linear" in scripts[0]
    assert "compilescope.aot_mock_backend(" in scripts[0]
    torch._dynamo.reset()
    shown: dict[str, Any] = {"__name__": "__repro__"}
    exec(compile(scripts[0], "script.py", "exec"), shown)
    with pytest.raises(ConstraintError) as again:
        shown["compiled"]()
    assert facts(again.value.violations) == facts(error.value.violations)


def test_inference_with_dynamic_shapes_and_several_graphs(cxx: None) -> None:
    def broken(x: Any) -> Any:
        x = x.sin() + 1
        torch._dynamo.graph_break()
        return x.cos() * 2

    backend = aot_mock_backend(strict=False, constraints=[DtypeConstraint(["float16"])])
    compiled = torch.compile(broken, backend=backend, dynamic=True)
    with torch.no_grad():
        for size in (5, 6):
            x = torch.randn(size, 3)
            torch.testing.assert_close(compiled(x), (x.sin() + 1).cos() * 2)
    assert [names(kept) for kept in backend.graphs] == [INFERENCE, INFERENCE]
    for kept in backend.graphs:
        (checked,) = kept.checked
        assert checked.stage == "aot_inference"
        assert {each.found for each in checked.errors} == {"float32"}
        shapes = kept["aot_inference"].graph.nodes[-2].outputs[0].shape
        assert isinstance(shapes[0], str)
    backend.clear()
    assert backend.graphs == []


def test_a_failed_compilation_is_kept_with_its_error(cxx: None) -> None:
    backend = aot_mock_backend(strict=False)
    with pytest.raises(Exception, match="no_such_setting"):
        torch.compile(lambda x: x + 1, backend=backend, options={"no_such_setting": 1})(
            torch.ones(2)
        )
    (kept,) = backend.graphs
    assert "no_such_setting" in kept.error
    assert names(kept) == ["dynamo"]


def test_nothing_of_it_stays_in_inductor(cxx: None) -> None:
    from torch._functorch import config as functorch_config
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering

    before = config.get_config_copy(), functorch_config.get_config_copy()
    with torch.no_grad():
        torch.compile(lambda x: x * 3, backend=aot_mock_backend)(torch.ones(3))
    aot_mock_backend.clear()
    assert (config.get_config_copy(), functorch_config.get_config_copy()) == before
    assert GraphLowering.save_output_code is None
