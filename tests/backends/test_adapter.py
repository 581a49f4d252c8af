"""An adapter is a backend: what it is given, what it may answer, and what it says of itself."""

from __future__ import annotations

import json
import logging
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import compilescope
from backends.toy_adapters import Emulator, denying
from compilescope.backends.adapters.base import AcceleratorAdapter
from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.contract import (
    CompilationResult,
    CompilationStatus,
    setting_names,
)
from compilescope.base.errors import ToolError
from compilescope.knowledge.rules.hardware.constraint import Constraint
from compilescope.record.bodies import Measurement, Violation
from compilescope.record.graph import Graph, Node, TensorInfo
from compilescope.report.islands import islands_document, islands_text
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from docs_pages import page_text

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Listening(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"


@pytest.fixture
def warned() -> Iterator[Listening]:
    """What the adapter logs."""
    handler, logger = Listening(), logging.getLogger("compilescope.backends")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.down = torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.norm(self.up(x)))
        return torch.softmax(self.down(h), dim=-1)


def compiling(function: Any, **settings: Any) -> AcceleratorAdapter:
    """An adapter whose `compile` is this function of the graph."""

    class Adapter(AcceleratorAdapter):
        def compile(self, gm: Any, inputs: Any) -> Any:
            return function(gm)

    return Adapter(**settings)


def program(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ x) + 1


def run(adapter: AcceleratorAdapter, function: Any = program) -> Any:
    return torch.compile(function, backend=adapter)(torch.ones(2, 2))


# The document


def test_the_document_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page_text("adapter")
    backend, use, passes = re.findall(r"```python\n(.*?)```", text, re.S)
    [printed] = re.findall(r"```text\n(.*?)```", text, re.S)
    assert len([line for line in backend.splitlines() if line.strip()]) <= 20
    (tmp_path / "chip.py").write_text(backend + use + passes)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("chip.py", run_name="__main__")
    assert capsys.readouterr().out == printed


def test_the_document_names_every_setting_and_argument() -> None:
    text = page_text("adapter")
    for name in setting_names():
        assert f"`{name}`" in text or f"{name} = " in text, name
    for name in AcceleratorCapabilities.__init__.__annotations__:
        if name not in ("return", "device"):
            assert f"`{name}`" in text, name
    for status in CompilationStatus:
        assert f"`{status.value}`" in text


# What it computes


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_training_step_is_that_of_eager_mode(dynamic: bool) -> None:
    torch.manual_seed(0)
    eager, tested = Net(), Net()
    tested.load_state_dict(eager.state_dict())
    adapter = Emulator(denying("aten.relu", "aten._softmax_backward_data"))
    compiled = torch.compile(tested, backend=adapter, dynamic=dynamic)
    for rows in (3, 5):
        x = torch.randn(rows, 8)
        for model in (eager, compiled):
            model.zero_grad()
            (model(x) ** 2).sum().backward()
    for one, other in zip(eager.parameters(), tested.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    for one, other in zip(eager.buffers(), tested.buffers(), strict=True):
        assert torch.equal(one, other)
    stages = {graph.stage for graph in adapter.report.graphs}
    assert stages == {"aot_forward", "aot_backward"}
    assert all(graph.islands for graph in adapter.report.graphs)


def test_inductor_runs_islands(cxx: None) -> None:
    adapter = compilescope.InductorAdapter(denying("aten.relu"))
    x = torch.randn(3, 4)
    with torch.no_grad():
        torch.testing.assert_close(run_on(adapter, x), program(x @ x.t()))
    [island, _] = adapter.report.islands
    assert island.status == "emulated" and island.by_op == {"aten.mm.default": 2}


def run_on(adapter: AcceleratorAdapter, x: torch.Tensor) -> torch.Tensor:
    return torch.compile(lambda x: program(x @ x.t()), backend=adapter)(x)


@pytest.mark.slow
def test_inductor_runs_islands_and_host_in_training(cxx: None) -> None:
    capabilities = denying("aten.relu", "aten.threshold_backward")
    adapter = compilescope.InductorAdapter(capabilities, fallback="inductor")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    x = torch.randn(3, 4)
    found = torch.compile(model, backend=adapter)(x)
    found.sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    wanted = model(x)
    wanted.sum().backward()
    torch.testing.assert_close(found, wanted)
    for one, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad)
    report = adapter.report
    assert not any(graph.notes for graph in report.graphs)
    assert {island.status for island in report.islands} == {"emulated"}


@pytest.mark.slow
def test_inductor_takes_dynamic_sizes(cxx: None) -> None:
    adapter = compilescope.InductorAdapter(denying("aten.sort"), fallback="inductor")

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.sort((x * 2).relu() + x.shape[0]).values.cumsum(0) * 3

    compiled = torch.compile(model, backend=adapter, dynamic=True)
    for rows in (4, 7):
        x = torch.randn(rows, 5)
        torch.testing.assert_close(compiled(x), model(x))
    assert len(adapter.report.graphs) == 1 and not adapter.report.graphs[0].notes


@pytest.mark.parametrize("device", ["npu-a", "trainer-b", "edge-dsp"])
def test_the_mock_reference_runs_as_eager_mode(device: str) -> None:
    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(4, 8)
    adapter = compilescope.MockAdapter(device)
    with torch.no_grad():
        assert torch.equal(torch.compile(model, backend=adapter)(x), model(x))
    report = adapter.report
    assert report.device == device
    assert {island.status for island in report.islands} <= {"emulated"}
    # trainer-b pads sizes by itself: a warning, and no reason to stay on the host.
    assert report.ops_share is not None and (report.ops_share == 1) == (device == "trainer-b")


def test_a_model_is_cut_at_lowered_operators_where_that_is_asked_for() -> None:
    table = torch.export.default_decompositions()
    adapter = Emulator(denying("aten.hardswish"), decompositions=table)
    run(adapter, torch.nn.functional.hardswish)
    [graph] = adapter.report.graphs
    assert not graph.host and graph.ops > 1


# What it may answer


def test_one_method_is_enough() -> None:
    adapter = compiling(lambda gm: lambda *args: gm(*args))
    assert torch.equal(run(adapter), program(torch.ones(2, 2)))
    assert adapter.report.device == "Adapter" and adapter.report.ops_share == 1


def test_a_constructor_of_ones_own_need_not_call_ours() -> None:
    class Own(Emulator):
        def __init__(self) -> None:
            self.seen = []

    assert torch.equal(run(Own()), program(torch.ones(2, 2)))


def test_an_adapter_without_compile_is_none() -> None:
    with pytest.raises(TypeError, match="compile"):
        type("Empty", (AcceleratorAdapter,), {})()


@pytest.mark.parametrize(
    ("result", "status", "share"),
    [
        (lambda gm: CompilationResult("success", lambda *a: gm(*a)), "compiled", 1.0),
        (lambda gm: CompilationResult("partial", gm.forward, warnings=["half"]), "partial", 0.0),
        (lambda gm: CompilationResult("fallback", fallback_fn=gm), "fallback", 0.0),
        (lambda gm: CompilationResult("failed", violations=["no room"]), "failed", 0.0),
        (lambda gm: CompilationResult("failed", fallback_fn=gm.forward), "failed", 0.0),
        (lambda gm: CompilationResult(compiled_fn=gm.forward), "fallback", 0.0),
        (lambda gm: gm, "fallback", 0.0),
    ],
)
def test_every_answer_runs_and_is_counted_as_what_it_is(result, status, share, warned) -> None:
    adapter = compiling(result)
    assert torch.equal(run(adapter), program(torch.ones(2, 2)))
    [island] = adapter.report.islands
    assert island.status == status
    assert adapter.report.ops_share == share
    assert ("runs on the host" in warned.text) == (status in ("fallback", "failed"))


def test_a_graph_handed_back_as_a_success_is_a_fallback_that_nobody_said() -> None:
    adapter = compiling(lambda gm: CompilationResult("success", gm.forward))
    run(adapter)
    [check] = adapter.report.failures
    assert check.name == "silent-fallback" and check.frame is not None
    assert check.frame.file == __file__


def test_a_function_that_raises_gives_way_to_its_fallback(warned) -> None:
    def broken(*args: Any) -> Any:
        raise RuntimeError("bus error")

    adapter = compiling(lambda gm: CompilationResult("success", broken, fallback_fn=gm))
    assert torch.equal(run(adapter), program(torch.ones(2, 2)))
    assert "bus error" in warned.text
    [island] = adapter.report.islands
    assert island.status == "failed" and "bus error" in island.reason
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match="bus error"):
        run(compiling(lambda gm: broken))


@pytest.mark.parametrize(
    ("function", "settings", "words"),
    [
        (
            lambda gm: None,
            {},
            "returned NoneType; it must return a CompilationResult, or a function",
        ),
        (lambda gm: 1 / 0, {}, r"could not be compiled: ZeroDivisionError.*test_adapter\.py:\d+"),
        (lambda gm: CompilationResult("great"), {}, "status is 'great'; it must be one of"),
        (lambda gm: CompilationResult("success"), {}, "there is no compiled_fn"),
        (lambda gm: CompilationResult("failed"), {"fallback": "refuse"}, "was not compiled"),
        (lambda gm: lambda *a: (a[0], a[0]), {}, "returned 2 results, but its graph has 1"),
        (lambda gm: lambda *a: a[0].half(), {}, r"result 0 is torch.float16 \[2, 2\]"),
        (lambda gm: lambda *a: 3, {}, "result 0 is int"),
        (lambda gm: gm, {"capabilities": 7}, "it must return AcceleratorCapabilities"),
        (lambda gm: gm, {"capabilities": "npu-z"}, "no device named 'npu-z'"),
    ],
)
def test_nonsense_gets_a_sentence(function, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=words) as raised:
        run(compiling(function, **settings))
    assert "internal error" not in str(raised.value)
    assert "TORCHDYNAMO_VERBOSE" not in str(raised.value)


def test_an_exception_in_compile_falls_back_where_that_is_asked_for() -> None:
    adapter = compiling(lambda gm: 1 / 0, on_error="fallback")
    assert torch.equal(run(adapter), program(torch.ones(2, 2)))
    [island] = adapter.report.islands
    assert island.status == "failed" and "ZeroDivisionError" in island.reason


def test_an_exception_in_get_capabilities_gets_a_sentence() -> None:
    class Unplugged(Emulator):
        def get_capabilities(self) -> AcceleratorCapabilities:
            raise OSError("no such device")

    with pytest.raises(Exception, match=r"get_capabilities\(\) failed with OSError: no such dev"):
        run(Unplugged())


def test_refusing_names_every_op_that_would_be_left() -> None:
    adapter = Emulator(denying("aten.relu", "aten.add"), fallback="refuse")
    with pytest.raises(compilescope.ConstraintError) as raised:
        run(adapter)
    assert {each.op for each in raised.value.violations} == {
        "aten.relu.default",
        "aten.add.Tensor",
    }
    assert all(each.file == __file__ for each in raised.value.violations)


def test_refusing_is_silent_where_all_goes_to_the_device() -> None:
    assert torch.equal(run(Emulator(fallback="refuse")), program(torch.ones(2, 2)))


def test_settings_are_checked() -> None:
    with pytest.raises(
        TypeError, match="no setting 'fallbak'; the settings are capabilities, fallback"
    ):
        Emulator(fallbak="eager")
    with pytest.raises(ValueError, match="it must be one of eager, inductor, refuse"):
        Emulator(fallback="gpu")
    with pytest.raises(ValueError, match="at least 1"):
        Emulator(min_island_ops=0)
    with pytest.raises(compilescope.AdapterError, match="does not accept mode or options"):
        torch.compile(program, backend=Emulator(), options={"a": 1})(torch.ones(2, 2))


def test_lower_changes_the_island_and_is_checked_again() -> None:
    class Lowering(Emulator):
        def lower(self, gm: Any, inputs: Any) -> Any:
            new = torch.fx.GraphModule(gm, torch.fx.Graph())
            values = [new.graph.placeholder(f"a{n}") for n, _ in enumerate(inputs)]
            for value, given in zip(values, inputs, strict=True):
                value.meta["val"] = given
            out = new.graph.call_function(self.operator, (values[0],))
            out.meta["val"] = inputs[0]
            new.graph.output((out,))
            new.recompile()
            return new

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    adapter = Lowering(denying("aten.sin"))
    adapter.operator = torch.ops.aten.exp.default
    x = torch.ones(2, 2)
    assert torch.equal(run(adapter, doubled), doubled(x))
    assert adapter.seen == [["aten.exp.default"]]
    torch._dynamo.reset()
    adapter = Lowering(denying("aten.sin"))
    adapter.operator = torch.ops.aten.sin.default
    assert torch.equal(run(adapter, doubled), doubled(x)), "the host runs what was not lowered"
    [island] = adapter.report.islands
    assert island.status == "failed" and "aten.sin.default" in island.reason
    assert adapter.seen == []


# What it takes


def test_capabilities_from_code_and_from_a_device_file(tmp_path: Path) -> None:
    said = AcceleratorCapabilities(
        name="chip",
        supported_dtypes={torch.float16, "fp32"},
        unsupported_ops={"aten.sort"},
        supported_ops=None,
        max_memory_bytes="1 MiB",
        requires_contiguous=True,
        alignment_requirement=16,
        max_tensor_dims=4,
        supports_dynamic_shapes=False,
        custom_constraints=[lambda node: None],
    )
    assert said.device.dtypes.supported == ("float16", "float32")
    assert said.device.memory.peak_bytes == said.max_memory_bytes == 2**20
    assert {c.name for c in said.constraints} == {"dtype", "layout", "memory", "operators", "shape"}
    file = tmp_path / "own.toml"
    file.write_text('name = "own"\n[ops]\ndenied = ["aten.relu"]\n')
    read = AcceleratorCapabilities.from_device(file)
    assert read.name == "own" and read.unsupported_ops == ("aten.relu",)
    adapter = Emulator(str(file))
    run(adapter)
    assert [op.op for op in adapter.report.graphs[0].host] == ["aten.relu.default"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"supported_dtypes": ["flaot32"]}, ValueError, "'flaot32' is not a dtype; did you mean"),
        ({"supported_dtypes": "float32"}, TypeError, "must be a collection of dtypes"),
        ({"unsupported_ops": ["aten.relux"]}, ValueError, "no operator aten.relux. Did you mean"),
        ({"supported_ops": ["aten.sort.stabel"]}, ValueError, "no overload aten.sort.stabel"),
        ({"supported_ops": []}, ValueError, "nothing would run"),
        ({"max_memory_bytes": "much"}, ValueError, "'much' is not a number of bytes"),
        ({"alignment_requirement": 0}, ValueError, "alignment_requirement must be"),
        ({"max_tensor_dims": -1}, ValueError, "max_tensor_dims must be"),
        ({"custom_constraints": [Constraint]}, TypeError, "constraint instances"),
        ({"narrows_integers": True}, ValueError, "without integer_width"),
    ],
)
def test_wrong_capabilities_get_a_sentence(arguments, error, words: str) -> None:
    with pytest.raises(error, match=words):
        AcceleratorCapabilities("chip", **arguments)


def test_an_unknown_device_gets_a_sentence() -> None:
    with pytest.raises(ToolError, match="no device named 'npu-q'"):
        AcceleratorCapabilities.from_device("npu-q")


def test_functions_of_nodes_are_checks() -> None:
    def no_relu(node: torch.fx.Node) -> str | None:
        return "relu is slow" if node.target is torch.ops.aten.relu.default else None

    def fails(node: torch.fx.Node) -> None:
        if node.op == "call_function" and "add" in node.name:
            raise KeyError("oops")

    adapter = Emulator(AcceleratorCapabilities("chip", custom_constraints=[no_relu, fails]))
    run(adapter)
    host = {op.op: op for op in adapter.report.graphs[0].host}
    assert host["aten.relu.default"].found == "relu is slow"
    assert host["aten.add.Tensor"].severity == "unknown"
    assert "fails failed with KeyError" in host["aten.add.Tensor"].found
    portable = Graph((Node("n", "call_function", "aten.relu.default", (), (TENSOR,)),))
    assert {each.severity for each in adapter.check(portable)} == {"unknown"}


TENSOR = TensorInfo((2, 2), "float32", (2, 1), "cpu", 16)


def test_checking_needs_no_compiling() -> None:
    adapter = Emulator(denying("aten.relu"))
    traced = torch.fx.symbolic_trace(program)
    found = adapter.check(traced, [torch.ones(2, 2)])
    assert [(each.rule, each.op) for each in found] == [("operators", "aten.relu.default")]
    assert len(adapter.check_constraints(traced, [torch.ones(2, 2)])) == 1
    assert adapter.check(Graph((Node("n", "call_function", "aten.relu.default"),)))
    with pytest.raises(TypeError, match="takes a GraphModule or a Graph, not int"):
        adapter.check(3)
    assert not adapter.report.graphs


# What it says of itself


def test_shares_borders_and_costs() -> None:
    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = x @ w
        s = torch.sort(h).values
        return (s + 1) @ w

    adapter = Emulator(denying("aten.sort"))
    x, w = torch.randn(4, 4), torch.randn(4, 4)
    torch.compile(model, backend=adapter)(x, w)
    report = adapter.report
    [graph] = report.graphs
    assert (graph.ops, graph.device_ops, len(graph.islands)) == (4, 3, 2)
    assert report.ops_share == 0.75 and report.flops_share == 1.0
    assert graph.flops.known == 2 * 2 * 4 * 4 * 4
    first, second = graph.islands
    assert [(c.other, c.size_bytes) for c in first.inward] == [("input", 64), ("input", 64)]
    assert [(c.name, c.other, c.size_bytes) for c in first.outward] == [("mm", "host", 64)]
    assert sorted(c.other for c in second.inward) == ["host", "input"]
    assert [c.other for c in second.outward] == ["output"]
    [behind] = graph.host
    assert behind.op == "aten.sort.default" and behind.ops_share_with == 1.0
    line = behind.places[0].frame
    assert line is not None and line.file == __file__ and "torch.sort" in line.source
    data = json.loads(report.to_json())
    assert data["ops_share"] == 0.75 and data["graphs"][0]["islands"][1]["number"] == 1
    adapter.forget()
    assert not adapter.report.graphs


def test_tensors_that_go_from_island_to_island_are_named_as_such() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        a = x * 2
        return torch.sort(a).values * a

    adapter = Emulator(denying("aten.sort"))
    torch.compile(model, backend=adapter)(torch.randn(4))
    first, second = adapter.report.islands
    assert {c.other for c in first.outward} == {"host", "island 1"}
    assert {c.other for c in second.inward} == {"host", "island 0"}


def test_parameters_are_known_as_such() -> None:
    adapter = Emulator()
    with torch.no_grad():
        torch.compile(torch.nn.Linear(4, 2), backend=adapter)(torch.randn(3, 4))
    [island] = adapter.report.islands
    assert sorted(c.other for c in island.inward) == ["input", "parameter", "parameter"]


def test_symbolic_sizes_are_not_counted_as_nothing() -> None:
    adapter = Emulator()
    with torch.no_grad():
        torch.compile(program, backend=adapter, dynamic=True)(torch.ones(3, 3))
    report = adapter.report
    assert report.flops_share is None and report.made_share is None and report.ops_share == 1
    assert "unknown" in islands_text(report)


def test_a_capture_hears_of_violations_and_shares() -> None:
    adapter = Emulator(denying("aten.relu"))
    with compilescope.capture() as seen:
        torch.compile(Net(), backend=adapter)(torch.randn(4, 8)).sum().backward()
    found = [(event, body) for event, body in seen.run.of(Violation) if body.op != ""]
    assert [(body.device, body.op, body.stage) for _, body in found] == [
        ("toy", "aten.relu.default", "aten_forward".replace("aten", "aot"))
    ]
    assert found[0][0].site is not None and found[0][0].site.file == __file__
    names = {body.name for _, body in seen.run.of(Measurement)}
    assert names == {"islands", "device_ops_percent"}
    assert seen.graphs[0].backend == "Emulator"
    assert "aten.relu.default" in seen.summary()


def test_backward_ops_have_the_line_of_their_forward_op() -> None:
    adapter = Emulator(denying("aten.threshold_backward", "aten.mm"))
    torch.compile(Net(), backend=adapter)(torch.randn(4, 8)).sum().backward()
    backward = adapter.report.graphs[1]
    lines = {op.op: op.places[0].frame for op in backward.host}
    relu = lines["aten.threshold_backward.default"]
    assert relu is not None and relu.file == __file__ and "torch.relu" in relu.source


def test_the_report_is_drawn_in_every_format() -> None:
    adapter = Emulator(denying("aten.relu"), checked=True)
    run(adapter)
    document = islands_document(adapter.report, full=True)
    for draw in (to_html, to_markdown):
        assert "aten.relu.default" in draw(document)
    text = islands_text(adapter.report)
    assert "2 of 3 ops on the device" in text and "silent-fallback" in text
    empty = islands_text(Emulator().report)
    assert "graphs" in empty
