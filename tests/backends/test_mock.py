"""The mock backend under real torch.compile runs."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope import (  # noqa: E402
    Constraint,
    ConstraintError,
    DtypeConstraint,
    LayoutConstraint,
    MemoryConstraint,
    ShapeConstraint,
    UnsupportedOpsConstraint,
    mock_backend,
)
from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.knowledge.analysis.device_checks import device_checks  # noqa: E402
from compilescope.record.bodies import Violation  # noqa: E402

HERE = Path(__file__)


@pytest.fixture(autouse=True)
def fresh_dynamo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (
        "MOCK_STRICT",
        "MOCK_ALIGNMENT",
        "MOCK_ALIGNMENT_DIMS",
        "MOCK_MAX_MEMORY",
        "MOCK_MAX_PEAK_MEMORY",
    ):
        monkeypatch.delenv(name, raising=False)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Mlp(torch.nn.Module):
    """Fifty features, which few devices like."""

    def __init__(self) -> None:
        super().__init__()
        self.widen = torch.nn.Linear(50, 64)
        self.narrow = torch.nn.Linear(64, 16)

    def forward(self, x: Any) -> Any:
        x = torch.nn.functional.gelu(self.widen(x))
        x = x.double().float()
        return self.narrow(x).softmax(-1)


def line_of(text: str) -> int:
    """The line of this file that is this statement."""
    lines = [line.strip() for line in HERE.read_text().splitlines()]
    return lines.index(text) + 1


def refusal(function: Any, *args: Any, **configuration: Any) -> ConstraintError:
    with pytest.raises(ConstraintError) as error:
        torch.compile(function, backend=mock_backend(repro=False, **configuration))(*args)
    return error.value


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def logged() -> Iterator[list[str]]:
    handler = Records()
    log = logging.getLogger("compilescope.backends")
    log.addHandler(handler)
    log.propagate = False
    yield handler.texts
    log.removeHandler(handler)
    log.propagate = True


def test_as_it_is_it_runs_the_graph_eagerly() -> None:
    model, x = torch.nn.Linear(50, 64), torch.randn(4, 50)
    compiled = torch.compile(model, backend=mock_backend, fullgraph=True)
    assert torch.equal(compiled(x), model(x))
    compiled(x).sum().backward()
    assert model.weight.grad is not None


def test_strict_raises_all_that_is_wrong_with_the_graph_at_once() -> None:
    constraints = [
        ShapeConstraint(16, dims=[-1]),
        DtypeConstraint(["float32", torch.float16]),
        UnsupportedOpsConstraint(["aten.gelu", "aten._softmax"]),
    ]
    error = refusal(Mlp(), torch.randn(4, 50), constraints=constraints)
    found = {(each.rule, each.line, each.op.removeprefix("aten.")) for each in error.violations}
    gelu = line_of("x = torch.nn.functional.gelu(self.widen(x))")
    softmax = line_of("return self.narrow(x).softmax(-1)")
    assert found == {
        ("shape", gelu, "parameter widen.weight"),
        ("shape", gelu, "input x"),
        ("dtype", line_of("x = x.double().float()"), "double"),
        ("operators", gelu, "gelu.default"),
        ("operators", softmax, "_softmax.default"),
    }
    for each in error.violations:
        assert each.file == str(HERE)
        assert each.source and each.found and each.allowed and each.remedy
        assert (each.stage, each.model, each.severity) == ("dynamo", "Mlp", "error")


def test_the_message_names_each_violation_in_eighty_columns() -> None:
    constraints = [ShapeConstraint(16, dims=[-1]), UnsupportedOpsConstraint(["aten.gelu"])]
    error = refusal(Mlp(), torch.randn(4, 50), constraints=constraints)
    text = str(error)
    assert max(map(len, text.splitlines())) < 80
    assert text.splitlines()[0].endswith("of Mlp: 3 violations.")
    for each in error.violations:
        assert f":{each.line} in forward" in text
        assert each.source in text
        assert each.op in text
        assert each.found in text
    # torch's own additions are for bugs, and this is none.
    assert "TORCHDYNAMO_VERBOSE" not in text


def test_it_is_caught_as_what_torch_raises_for_a_backend_too() -> None:
    from torch._dynamo.exc import BackendCompilerFailed

    with pytest.raises(BackendCompilerFailed) as error:
        torch.compile(Mlp(), backend=mock_backend(alignment=16, repro=False))(torch.randn(4, 50))
    assert error.value.inner_exception.violations
    assert error.value.backend_name == "mock_backend"


def test_suppress_errors_falls_back_as_for_any_backend() -> None:
    model, x = Mlp(), torch.randn(4, 50)
    with torch._dynamo.config.patch(suppress_errors=True):
        result = torch.compile(model, backend=mock_backend(alignment=16, repro=False))(x)
    assert torch.equal(result, model(x))


def test_an_aten_name_is_refused_though_the_graph_says_another() -> None:
    """Dynamo writes torch.nn.functional.linear; the device is told of aten.addmm."""
    error = refusal(Mlp(), torch.randn(4, 50), constraints=[UnsupportedOpsConstraint(["addmm"])])
    assert {each.op for each in error.violations} == {"aten.addmm.default"}
    assert len(error.violations) == 2


def test_lines_that_repeat_are_counted_and_not_repeated() -> None:
    def layers(x: Any) -> Any:
        for _ in range(5):
            x = x.sin() + 1
        return x

    error = refusal(layers, torch.randn(4), constraints=[UnsupportedOpsConstraint(["aten.sin"])])
    assert len(error.violations) == 5
    assert ", 5 times" in str(error)


def test_layout_and_memory() -> None:
    def turn(x: Any) -> Any:
        return (x.t() + 1).sum()

    error = refusal(
        turn, torch.randn(8, 4), constraints=[LayoutConstraint(True), MemoryConstraint(100)]
    )
    assert {each.rule for each in error.violations} == {"layout", "memory"}


def test_what_cannot_be_told_is_listed_and_does_not_raise(logged: list[str]) -> None:
    def grow(x: Any) -> Any:
        return x.sin() * 2

    backend = mock_backend(alignment=16, repro=False)
    torch.compile(grow, backend=backend, dynamic=True)(torch.randn(5, 7))
    assert len(logged) == 1
    assert "Not determined" in logged[0]
    assert "does not support" not in logged[0]


def test_warning_mode_logs_one_record_a_graph_and_goes_on(logged: list[str]) -> None:
    def broken(x: Any) -> Any:
        x = x.sin()
        torch._dynamo.graph_break()
        return x.sin() + 1

    backend = mock_backend(strict=False, constraints=[UnsupportedOpsConstraint(["aten.sin"])])
    result = torch.compile(broken, backend=backend)(torch.zeros(3))
    assert torch.equal(result, torch.ones(3))
    assert len(logged) == 2
    assert all("1. operators: aten.sin.default" in text for text in logged)


def test_a_constraint_of_ones_own() -> None:
    class NoAddition(Constraint):
        def check_node(self, node: Any) -> Any:
            if node.target == "_operator.add":
                return self.breach(node, found="a sum", allowed="no sums", remedy="Subtract.")
            return None

    error = refusal(lambda x: x + 1, torch.randn(3), constraints=[NoAddition()])
    (only,) = error.violations
    assert (only.rule, only.found, only.remedy) == ("NoAddition", "a sum", "Subtract.")


def test_a_constraint_that_raises_is_reported_and_the_others_go_on() -> None:
    class Faulty(Constraint):
        def check_node(self, node: Any) -> Any:
            raise KeyError("lost")

    constraints = [Faulty(), UnsupportedOpsConstraint(["aten.sin"])]
    error = refusal(lambda x: x.sin(), torch.randn(3), constraints=constraints)
    assert {each.op for each in error.violations} == {"aten.sin.default"}
    assert any("Faulty failed with KeyError" in each.found for each in error.unknown)


def test_a_device_by_name_and_by_file(tmp_path: Path) -> None:
    error = refusal(Mlp(), torch.randn(4, 50), device="npu-a")
    assert {each.device for each in error.violations} == {"npu-a"}
    assert str(error).startswith("npu-a does not support")
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\n[ops]\ndenied = ["aten.gelu"]\n')
    error = refusal(Mlp(), torch.randn(4, 50), device=file)
    assert [each.op for each in error.violations] == ["aten.gelu.default"]


def test_arguments_win_over_the_device_and_both_over_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\n[memory]\npeak_bytes = "1 GiB"\n[[shapes.alignment]]\nmultiple = 25\n'
    )
    monkeypatch.setenv("MOCK_ALIGNMENT", "64")
    monkeypatch.setenv("MOCK_MAX_PEAK_MEMORY", "1 KiB")
    error = refusal(lambda x: x + 1, torch.randn(7, 49), device=file)
    assert {each.allowed for each in error.violations} == {"multiples of 25"}
    limits: dict[str, Any] = {"alignment": 7, "max_peak_memory": 64}
    error = refusal(lambda x: x + 1, torch.randn(7, 49), device=file, **limits)
    assert {each.rule for each in error.violations} == {"memory"}
    error = refusal(lambda x: x + 1, torch.randn(7, 49))
    assert {each.allowed for each in error.violations} == {
        "multiples of 64",
        "at most 1 KiB per graph",
    }
    error = refusal(lambda x: x + 1, torch.randn(7, 49), alignment=32)
    assert {each.allowed for each in error.violations} == {
        "multiples of 32",
        "at most 1 KiB per graph",
    }


def test_the_environment_is_read_when_it_compiles(
    monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    monkeypatch.setenv("MOCK_STRICT", "0")
    monkeypatch.setenv("MOCK_ALIGNMENT", "16")
    torch.compile(lambda x: x + 1, backend=mock_backend)(torch.randn(5))
    assert "size 5, dimension 0 of [5]" in logged[-1]


def test_a_wrong_environment_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCK_MAX_MEMORY", "a lot")
    with pytest.raises(ToolError) as error:
        torch.compile(lambda x: x + 1, backend=mock_backend)(torch.randn(5))
    assert str(error.value).startswith("MOCK_MAX_MEMORY is 'a lot'; it must be a number of bytes")
    with pytest.raises(ToolError, match="MOCK_MAX_MEMORY"):
        mock_backend()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"device": "npu-zzz"}, "no device named 'npu-zzz'"),
        ({"constraints": [ShapeConstraint]}, "ShapeConstraint is a class"),
        ({"constraints": ShapeConstraint(8)}, "constraints must be a list"),
        ({"constraints": ["aten.sin"]}, "is not a constraint"),
        ({"alignment": 0}, "alignment is 0"),
        ({"alignment": True}, "alignment is True"),
        ({"max_memory": "much"}, "max_memory is 'much'"),
        ({"max_peak_memory": "much"}, "max_peak_memory is 'much'"),
        ({"repro_timeout_s": 0}, "repro_timeout_s is 0"),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as error:
        mock_backend(**arguments)
    assert words in error.value.message


@pytest.mark.parametrize("given", [Mlp(), "npu-a"], ids=["a model", "a device"])
def test_what_is_no_graph_is_one_sentence(given: Any) -> None:
    with pytest.raises(ToolError, match=r"was called with (Mlp|str), not a graph") as error:
        mock_backend(given)
    assert "torch.compile(model, backend=mock_backend)" in error.value.hint


def test_an_unknown_argument_is_named() -> None:
    with pytest.raises(TypeError, match=r"mock_backend\(\) got .* 'colour'"):
        mock_backend(colour="red")


def test_options_of_torch_compile_are_the_configuration() -> None:
    options = {"alignment": 16, "repro": False}
    with pytest.raises(ConstraintError):
        torch.compile(lambda x: x + 1, backend=mock_backend, options=options)(torch.randn(5))
    torch._dynamo.reset()
    with pytest.raises(ToolError, match="colour"):
        torch.compile(lambda x: x + 1, backend=mock_backend, options={"colour": 1})(torch.ones(5))


def test_by_name() -> None:
    found = entry_points(group="torch_dynamo_backends", name="compilescope_mock")
    if not found:
        pytest.skip("this installation is older than its entry points")
    assert next(iter(found)).load() is mock_backend
    assert "compilescope_mock" in torch._dynamo.list_backends()
    result = torch.compile(lambda x: x + 1, backend="compilescope_mock")(torch.zeros(2))
    assert torch.equal(result, torch.ones(2))


def test_a_capture_gets_the_violations_too() -> None:
    def broken(x: Any) -> Any:
        x = helper(x)
        torch._dynamo.graph_break()
        return x.sin() + 1

    def helper(x: Any) -> Any:
        return x.sin()

    backend = mock_backend(strict=False, constraints=[UnsupportedOpsConstraint(["aten.sin"])])
    with compilescope.capture() as seen:
        torch.compile(broken, backend=backend)(torch.zeros(3))
    events = list(seen.run.of(Violation))
    assert [(body.rule, body.op, body.stage, body.model) for _, body in events] == [
        ("operators", "aten.sin.default", "dynamo", "broken"),
        ("operators", "aten.sin.default", "dynamo", "broken"),
    ]
    inner, rest = (event for event, _ in events)
    assert [frame.function for frame in inner.stack[-2:]] == ["broken", "helper"]
    assert inner.site.source.strip() == "return x.sin()"
    assert rest.site.source.strip() == "return x.sin() + 1"
    assert rest.site.function == "broken"
    assert inner.compile_id != rest.compile_id
    assert not seen.digest.faults
    assert "aten.sin.default" in seen.summary()


def test_a_capture_knows_what_was_checked_and_passed() -> None:
    with compilescope.capture() as seen:
        torch.compile(lambda x: x + 1, backend=mock_backend(device="npu-a"))(torch.randn(16, 16))
        torch.compile(lambda x: x + 2, backend=mock_backend(constraints=[]))(torch.randn(5))
    (check,) = device_checks(
        seen.run
    )  # Of two graphs it saw one: where nothing is asked, nothing passes.
    assert (check.device, check.outcome, check.graphs) == ("npu-a", "unknown", 1)


def test_a_capture_sees_the_refusal_of_strict_mode() -> None:
    with pytest.raises(ConstraintError), compilescope.capture() as seen:
        torch.compile(lambda x: x + 1, backend=mock_backend(alignment=16, repro=False))(
            torch.randn(5)
        )
    assert len(list(seen.run.of(Violation))) == 2
    (failure,) = seen.failures
    assert failure.error == "ConstraintError"


def test_a_graph_that_was_traced_by_hand() -> None:
    module = torch.fx.symbolic_trace(Mlp())
    with pytest.raises(ConstraintError) as error:
        mock_backend(alignment=16, device=None, repro=False)(module, [torch.randn(4, 50)])
    assert any("size 50" in each.found for each in error.value.violations)
    denied = [UnsupportedOpsConstraint(["aten.addmm"])]
    with pytest.raises(ConstraintError) as error:
        mock_backend(constraints=denied, repro=False)(module, [torch.randn(4, 50)])
    assert len(error.value.violations) == 2
    assert torch.equal(
        mock_backend(constraints=[])(module, [torch.randn(4, 50)])(torch.ones(1, 50)),
        module(torch.ones(1, 50)),
    )
    assert not any("val" in node.meta for node in module.graph.nodes)


def guards_and_compilations(backend: Any, function: Any, inputs: list[Any]) -> tuple[Any, ...]:
    torch._dynamo.reset()
    with compilescope.capture() as seen:
        compiled = torch.compile(function, backend=backend)
        for given in inputs:
            compiled(given)
    guards = sorted((guard.source, guard.kind, guard.checks) for guard in seen.guards)
    return guards, len(seen.graphs), [each.count for each in seen.recompiles]


def reshaping(x: Any) -> Any:
    y = x.reshape(x.shape[0] * x.shape[1])
    return torch.nn.functional.pad(y, (0, x.shape[1])).view(-1, x.shape[1]) @ x.mT


def picking(x: Any) -> Any:
    some = x[x > 0]
    torch._check(some.shape[0] > 2)
    return some.reshape(-1, 1).expand(-1, 3).sum() + x.sum().item()


SCALE = torch.tensor(2.0, requires_grad=True)


def dropping(x: Any) -> Any:
    return torch.nn.functional.dropout(x * SCALE, 0.5).sum()


@pytest.mark.parametrize(
    "function", [reshaping, picking, dropping], ids=["backed", "unbacked", "saved for backward"]
)
def test_it_leaves_no_guard_and_no_recompilation_behind(function: Any) -> None:
    """Looking for operators asks about sizes; nothing that is learnt so may bind the program."""
    inputs = [torch.rand(n, m) for n, m in ((3, 4), (5, 4), (6, 7), (2, 2), (9, 31))]
    mock = mock_backend(
        strict=False,
        alignment=16,
        constraints=[UnsupportedOpsConstraint(["aten.mm"]), LayoutConstraint(True)],
    )
    wanted = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    log = logging.getLogger("compilescope.backends")
    log.disabled, before = True, log.disabled
    try:
        with torch._dynamo.config.patch(wanted):
            plain = guards_and_compilations("eager", function, inputs)
            checked = guards_and_compilations(mock, function, inputs)
    finally:
        log.disabled = before
    assert checked[1:] == plain[1:]
    ours = [guard for guard in checked[0] if "BACKEND" not in guard[1]]
    assert ours == [guard for guard in plain[0] if "BACKEND" not in guard[1]]


def test_importing_the_package_and_its_names_imports_no_torch() -> None:
    code = (
        "import sys, compilescope\n"
        "from compilescope import Constraint, ShapeConstraint, DtypeConstraint, MemoryConstraint\n"
        "from compilescope import LayoutConstraint, UnsupportedOpsConstraint\n"
        "assert 'torch' not in sys.modules\n"
        "assert {'mock_backend', 'aot_mock_backend', 'ConstraintError'} <= set(dir(compilescope)) "
        "| set(compilescope.__all__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
