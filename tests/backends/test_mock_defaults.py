"""What is checked where nobody says what to check, and how little it takes to say it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from compilescope import (  # noqa: E402
    ConstraintError,
    DtypeConstraint,
    LayoutConstraint,
    MemoryConstraint,
    MockAdapter,
    ShapeConstraint,
    UnsupportedOpsConstraint,
    aot_mock_backend,
    mock_backend,
)
from compilescope.backends.device_files import find_device  # noqa: E402
from compilescope.backends.mock import messages  # noqa: E402
from compilescope.backends.mock.configuration import configure  # noqa: E402
from compilescope.base.errors import ToolError  # noqa: E402

NAMES = (
    "MOCK_STRICT",
    "MOCK_ALIGNMENT",
    "MOCK_ALIGNMENT_DIMS",
    "MOCK_MAX_MEMORY",
    "MOCK_MAX_PEAK_MEMORY",
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def broken(function: Any, *inputs: Any, backend: Any = None, **settings: Any) -> set[str]:
    """The rules that are broken; empty where the graph is taken."""
    backend = backend or mock_backend(repro=False, **settings)
    torch._dynamo.reset()
    try:
        with torch.no_grad():
            torch.compile(function, backend=backend)(*inputs)
    except ConstraintError as error:
        return {each.rule for each in error.violations}
    return set()


def found(function: Any, *inputs: Any, **settings: Any) -> set[str]:
    return {each.found for each in violations(function, *inputs, **settings)}


def violations(function: Any, *inputs: Any, **settings: Any) -> Any:
    torch._dynamo.reset()
    with pytest.raises(ConstraintError) as error, torch.no_grad():
        torch.compile(function, backend=mock_backend(repro=False, **settings))(*inputs)
    return error.value.violations


def turned(x: Any) -> Any:
    return x.t() + 1


def deep(x: Any) -> Any:
    return x.view(*[1] * 9, -1) + 1


def factored(x: Any) -> Any:
    return torch.linalg.lu_factor(x)[0]


def doubled(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize(
    ("function", "given", "rule"),
    [
        (doubled, torch.ones(4, 4, dtype=torch.float64), "dtype"),
        (doubled, torch.ones(4, 4, dtype=torch.complex64), "dtype"),
        (turned, torch.ones(4, 8), "layout"),
        (factored, torch.ones(4, 4), "operators"),
        (deep, torch.ones(4), "shape"),
    ],
    ids=["float64", "complex", "transposed", "LU", "rank"],
)
def test_all_five_kinds_are_checked_by_default(function: Any, given: Any, rule: str) -> None:
    assert broken(function, given, backend=mock_backend(repro=False)) == {rule}


def test_and_so_is_memory() -> None:
    module, huge = torch.fx.symbolic_trace(doubled), torch.empty(2**33, device="meta")
    with pytest.raises(ConstraintError) as error:
        mock_backend(repro=False)(module, [huge])
    assert {each.rule for each in error.value.violations} == {"memory"}


def test_memory_is_limited_per_tensor_and_per_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tensor of 400 bytes, and 1,200 of them at once: each limit has its own name."""

    def added(x: Any) -> Any:
        return x.exp() + x.sin()

    x = torch.ones(100)
    monkeypatch.setenv("MOCK_MAX_MEMORY", "400")
    assert broken(added, x, backend=mock_backend) == set()
    monkeypatch.setenv("MOCK_MAX_PEAK_MEMORY", "1000")
    (peak,) = found(added, x)
    assert "at once" in peak
    assert broken(added, x, max_peak_memory=2000) == set()
    assert broken(added, x, max_peak_memory=2000, max_memory=399) == {"memory"}
    monkeypatch.setenv("MOCK_MAX_MEMORY", "399")
    monkeypatch.delenv("MOCK_MAX_PEAK_MEMORY")
    assert found(added, x) == {"400 bytes: float32 [100]"}
    assert broken(added, x, constraints=[]) == {"memory"}
    assert broken(added, x, constraints=[MemoryConstraint(2000)]) == set()


def test_notice_and_error_name_both_limits_of_memory_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MOCK_MAX_MEMORY", "100")
    monkeypatch.setenv("MOCK_MAX_PEAK_MEMORY", "1000")
    device = configure().device
    assert device is not None
    limits = ["at most 100 bytes per tensor", "at most 1000 bytes per graph"]
    assert f"  memory     {', '.join(limits)}\n" in messages.notice(device, "mock_backend")
    with pytest.raises(ConstraintError) as error:
        torch.compile(lambda x: x.exp() + x.sin(), backend=mock_backend(repro=False))(
            torch.ones(100)
        )
    assert {each.allowed for each in error.value.violations} == set(limits)


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def test_what_is_checked_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_said", set())
    records = Records()
    messages.log.addHandler(records)
    try:
        broken(doubled, torch.ones(4), constraints=[LayoutConstraint()])
        broken(doubled, torch.ones(4), device="npu-a")
        assert not records.texts
        for _ in range(2):
            broken(doubled, torch.ones(4), backend=mock_backend)
    finally:
        messages.log.removeHandler(records)
    (said,) = records.texts
    for word in ("dtype", "shape", "layout", "memory", "operators", "16 GiB", "contiguous"):
        assert word in said
    assert "float64" not in said and "aten.linalg_lu*" in said
    assert "compilescope devices show generic" in said and "constraints=[...]" in said


def test_a_list_of_constraints_is_all_that_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(4, 8, dtype=torch.float64)
    assert broken(turned, x, constraints=[]) == set()
    assert broken(turned, x, constraints=[UnsupportedOpsConstraint(["aten.sin"])]) == set()
    assert broken(turned, x, constraints=[DtypeConstraint()]) == {"dtype"}
    assert broken(turned, x, device="generic", constraints=[ShapeConstraint(16)]) == {
        "dtype",
        "layout",
        "shape",
    }
    monkeypatch.setenv("MOCK_ALIGNMENT", "16")
    assert broken(turned, x, constraints=[]) == {"shape"}
    assert broken(turned, x, constraints=[ShapeConstraint(4)]) == set()


def test_constraints_without_arguments_are_those_of_the_generic_device() -> None:
    generic = find_device("generic")
    assert DtypeConstraint().allowed == set(generic.dtypes.supported)
    assert LayoutConstraint().formats == generic.layout.formats == ("contiguous",)
    assert MemoryConstraint().max_memory_bytes == generic.memory.peak_bytes == 16 * 2**30
    assert UnsupportedOpsConstraint().unsupported.patterns == generic.ops.denied
    assert broken(turned, torch.ones(4, 8), constraints=[LayoutConstraint()]) == {"layout"}
    half = torch.ones(4, dtype=torch.float16)
    assert broken(doubled, half, constraints=[DtypeConstraint()]) == set()


@pytest.mark.parametrize(
    "name",
    ["linalg_lu_factor_ex", "linalg_qr", "_linalg_svd", "linalg_eig", "linalg_cholesky_ex",
     "nonzero", "_unique2", "masked_select"],
)  # fmt: skip
def test_what_accelerators_rarely_have_is_denied(name: str) -> None:
    assert UnsupportedOpsConstraint().unsupported.match(f"aten.{name}.default")


@pytest.mark.parametrize(
    "name",
    ["sort", "topk", "cumsum", "index_put", "scatter_add", "embedding", "linalg_vector_norm"],
)
def test_what_ordinary_models_need_is_not(name: str) -> None:
    assert not UnsupportedOpsConstraint().unsupported.match(f"aten.{name}.default")


@pytest.mark.parametrize(
    ("layer", "size", "found_in"),
    [
        (lambda: torch.nn.Conv3d(2, 2, 1), (1, 2, 4, 4, 4), "stride = [1, 1, 1]"),
        (lambda: torch.nn.ConvTranspose1d(2, 2, 1), (1, 2, 4), "transposed = True"),
        (lambda: torch.nn.ConvTranspose2d(2, 2, 1), (1, 2, 4, 4), "transposed = True"),
        (lambda: torch.nn.Conv1d(2, 2, 1), (1, 2, 4), ""),
        (lambda: torch.nn.Conv2d(2, 2, 1), (1, 2, 4, 4), ""),
    ],
    ids=["3d", "transposed 1d", "transposed 2d", "1d", "2d"],
)
@pytest.mark.parametrize("make", [mock_backend, aot_mock_backend], ids=["dynamo", "aot"])
def test_convolutions_that_accelerators_rarely_have(
    layer: Any, size: tuple[int, ...], found_in: str, make: Any
) -> None:
    torch._dynamo.reset()
    backend, module, given = make(repro=False), layer(), torch.ones(size)
    if not found_in:
        torch.compile(module, backend=backend)(given).sum().backward()
        return
    with pytest.raises(ConstraintError) as error:
        torch.compile(module, backend=backend)(given)
    assert {(each.rule, each.found) for each in error.value.violations} == {("operators", found_in)}
    stages = {each.stage for each in error.value.violations}
    assert stages == ({"dynamo"} if make is mock_backend else {"aot_forward", "aot_backward"})


def _heads(x: Any) -> Any:
    return x.view(2, 16, 4, 16).permute(0, 2, 1, 3)


@pytest.mark.parametrize("make", [mock_backend, aot_mock_backend], ids=["dynamo", "aot"])
def test_heads_before_positions_are_named_where_an_operator_copies_them(make: Any) -> None:
    def folded(x: Any) -> Any:
        heads = _heads(x)
        attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        return (attended + heads.contiguous() @ heads.mT @ heads).transpose(1, 2).reshape(2, 16, 64)

    x = torch.ones(2, 16, 64)
    records = Records()
    messages.log.addHandler(records)
    try:
        assert broken(lambda x: _heads(x).relu() * 2, x, backend=make(repro=False)) == set()
        said = "".join(records.texts)
        assert said.count("layout: ") == 1 and "layout: aten.relu" in said and "warning" in said
        records.texts.clear()
        assert broken(folded, x, backend=make(repro=False)) == set()
        assert "layout: " not in "".join(records.texts)
    finally:
        messages.log.removeHandler(records)


def test_the_notice_and_a_violation_name_the_layout_in_the_same_words() -> None:
    (breach,) = violations(turned, torch.ones(4, 8))
    assert breach.allowed == "contiguous, or dense rows in their order"
    assert breach.allowed in messages.notice(find_device("generic"), "mock_backend")


def test_an_alignment_holds_for_all_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(3, 1, 8)
    odd = {"size 3, dimension 0 of [3, 1, 8]"}
    assert found(doubled, x, alignment=8) == odd
    assert found(doubled, x, constraints=[ShapeConstraint(8)]) == odd
    monkeypatch.setenv("MOCK_ALIGNMENT", "8")
    assert found(doubled, x) == odd
    assert broken(doubled, torch.ones(8, 1)) == set() == broken(doubled, torch.ones(()))
    assert broken(doubled, x, alignment_dims="last") == set()
    assert broken(doubled, x, alignment=8, alignment_dims=(-1, 1)) == {"shape"}
    assert broken(doubled, x, constraints=[ShapeConstraint(8, dims=(-1,))]) == set()
    monkeypatch.setenv("MOCK_ALIGNMENT_DIMS", "last")
    assert broken(doubled, x) == set()
    with pytest.raises(ToolError, match="alignment_dims is 'some'"):
        mock_backend(alignment_dims="some")
    monkeypatch.setenv("MOCK_ALIGNMENT_DIMS", "1,")
    with pytest.raises(ToolError, match="MOCK_ALIGNMENT_DIMS is '1,'; it must be all, last, or"):
        mock_backend()
    monkeypatch.setenv("MOCK_ALIGNMENT_DIMS", "-2, -1")
    assert broken(doubled, x) == {"shape"}
    assert broken(doubled, torch.ones(3, 8, 8)) == set()


def test_an_adapter_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = MockAdapter()
    assert adapter.get_capabilities().device == find_device("generic")
    assert not adapter.strict
    x = torch.ones(4, 8)
    assert broken(turned, x, backend=adapter) == set()
    assert adapter.report.graphs[0].host
    assert broken(turned, x, backend=MockAdapter(strict=True)) == {"layout"}
    monkeypatch.setenv("MOCK_STRICT", "1")
    monkeypatch.setenv("MOCK_MAX_MEMORY", "16")
    monkeypatch.setenv("MOCK_ALIGNMENT", "64")
    assert broken(turned, x, backend=adapter) == {"layout", "memory", "shape"}
    quiet = MockAdapter(strict=False, alignment=1, max_memory="1 MiB")
    assert broken(turned, x, backend=quiet) == set()


def test_an_adapter_takes_the_arguments_of_the_mock_backend() -> None:
    device = MockAdapter("npu-a", alignment=8, alignment_dims="last").get_capabilities().device
    assert [(rule.multiple, rule.dims) for rule in device.shapes.alignment] == [(8, (-1,))]
    assert device.name == "npu-a" and device.ops.denied
    with pytest.raises(ToolError, match="alignment is 0"):
        MockAdapter(alignment=0)
    with pytest.raises(ToolError, match="no device named"):
        MockAdapter("npu-zzz")


def test_an_adapter_that_is_handed_a_graph_judges_it() -> None:
    graph = torch.fx.symbolic_trace(torch.nn.Linear(4, 4).double())
    x = torch.ones(2, 4, dtype=torch.float64)
    with torch.no_grad():
        made = MockAdapter().compile(graph, [x])
        assert made.status == "failed" and "float64" in " ".join(map(str, made.violations))
        assert MockAdapter().compile(graph.float(), [x.float()]).status == "success"
    with pytest.raises(ToolError, match="not a graph"):
        MockAdapter().compile(torch.nn.Linear(4, 4), [x])
