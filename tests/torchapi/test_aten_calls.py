"""The operators behind Dynamo's nodes, held against what the graph dispatches when it runs."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from compilescope.instrument.torchapi.calls.aten import with_calls  # noqa: E402
from compilescope.instrument.torchapi.graphs.fx import portable  # noqa: E402

WEIGHT = torch.ones(4, 4, requires_grad=True)


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Noting(TorchDispatchMode):
    """Every operator that a block dispatches. Autograd's detaching of what it saves is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.namespace != "prim" and not func._opname.startswith(("sym_", "detach")):
            self.ops.append(str(func))
        return result


def aten_calls(module: Any) -> dict[str, Any]:
    """Node -> its operators with those of graphs that it runs; None where nothing told them."""
    graph = with_calls(portable(module), module)
    return {node.name: with_inner_calls(node) for node in graph.nodes}


def with_inner_calls(node: Any) -> Any:
    # The second graph of an autograd function is for the backward pass.
    graphs = node.graphs[:1] if "autograd_function_apply" in node.target else node.graphs
    inner = [with_inner_calls(each) for graph in graphs for each in graph.nodes]
    found = [node.calls, *inner]
    return None if None in found else tuple(call for calls in found for call in calls)


class Brute(torch.fx.Interpreter):
    """Runs a graph on real tensors, node by node."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.ops: dict[str, list[str]] = {}

    def run_node(self, n: Any) -> Any:
        with Noting() as noting:
            result = super().run_node(n)
        self.ops[n.name] = noting.ops
        return result


def compare(function: Any, *args: Any, dynamic: bool, context: Any = None) -> int:
    """Compile, look at the operators, run, and hold them against each other, graph by graph."""
    compared = 0

    def backend(module: Any, inputs: Any) -> Any:
        before = modes()
        calls = aten_calls(module)
        assert modes() == before

        def run(*values: Any) -> Any:
            nonlocal compared
            brute = Brute(module)
            result = brute.run(*values)
            for node in module.graph.nodes:
                found = calls[node.name]
                assert found is not None, (node.name, node.target)
                ops = [call.op for call in found if not call.op.startswith("aten.detach")]
                assert ops == brute.ops[node.name], (node.name, node.target)
                compared += len(ops)
            return result

        return run

    with context or contextlib.nullcontext():
        torch.compile(function, backend=backend, dynamic=dynamic)(*args)
    assert compared
    return compared


def modes() -> tuple[Any, ...]:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(),
        torch._C._functorch.get_dynamic_layer_stack_depth(),
    )


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.GroupNorm(2, 8),
            nn.Dropout(0.1),
            nn.Flatten(),
            nn.Linear(8 * 9, 5),
        )

    def forward(self, x: Any) -> Any:
        y = self.body(x)
        return F.cross_entropy(y, torch.zeros(x.shape[0], dtype=torch.long))


def casting(x: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ WEIGHT
        with torch.autocast("cpu", enabled=False):
            z = y.float() @ WEIGHT
        y = torch.bmm(y, y.transpose(1, 2))
    with torch.no_grad():
        q = x @ WEIGHT
    return y.sum() + z.sum() + (x @ WEIGHT).sum() + q.sum()


def changing(x: Any, y: Any) -> Any:
    y = y.sin()
    y.add_(1)
    y[0] = 3
    y[:, 1:] *= 2
    z = y.view(-1)
    z.mul_(x.sum())
    y.relu_()
    t = y.clone().transpose_(0, 1)
    t.unsqueeze_(0)
    y.masked_fill_(y > 0, 1.0)
    y[y > 0] = 1
    return y, t


def making(x: Any) -> Any:
    a = torch.arange(x.shape[0])
    b = torch.zeros_like(x) + torch.ones(3, 4) + torch.tensor([1.0, 2, 3, 4])
    c = torch.rand(3, 4) + torch.randn_like(x)
    d = torch.where(torch.triu(torch.ones(4, 4), 1).bool(), 1.0, 0.0)
    e = torch.cat([x, b], 1).to(torch.float64)
    return a.sum() + b.sum() + c.sum() + d.sum() + e.sum() + F.one_hot(a).sum()


def looking(x: Any) -> list[Any]:
    views = (
        x.T, x[None], x[..., 1:], x.chunk(2)[0], x.expand(2, *x.shape), x.unfold(1, 2, 1),
        x.reshape(-1), x.T.reshape(-1), x.T.contiguous(), x.permute(1, 0).flatten(), x.diagonal(),
        torch.roll(x, 1), x.repeat(2, 2), x.gather(1, torch.zeros(4, 1, dtype=torch.long)),
        F.pad(x, (1, 1)), F.interpolate(x[None, None], scale_factor=2), x.cumsum(0), x.std(),
        torch.fft.fft(x).real, x.softmax(1), F.normalize(x), torch.cdist(x, x), F.mse_loss(x, x),
        F.silu(x), F.glu(x), x // 2, x**2, torch.einsum("ij,jk->ik", x, x), F.layer_norm(x, (4,)),
        F.embedding(torch.tensor([1]), x), x.topk(2)[0], x.sort()[1], F.rms_norm(x, (4,)),
        F.scaled_dot_product_attention(x[None], x[None], x[None]),
    )  # fmt: skip
    return [view.sum() for view in views]


def mapping(x: Any) -> Any:
    slope = torch.func.grad(lambda q: (q * q).sum())(x[0])
    return torch.vmap(lambda row: (row @ WEIGHT).softmax(-1))(x) + slope


def counting(x: Any) -> Any:
    places = x.nonzero()
    some = x[x > 0]
    many = int(x.abs().sum().item())
    room = x.new_zeros(many + 1)
    return places.float().sum() + some.sum() + torch.unique(x).sum() + room.sum(), some * 2


SUBJECTS = {
    "convolutions, training": (Convolutions(), (torch.randn(4, 3, 8, 8),), None),
    "convolutions, inference": (Convolutions().eval(), (torch.randn(4, 3, 8, 8),), torch.no_grad),
    "attention": (nn.TransformerEncoderLayer(16, 4), (torch.randn(5, 2, 16),), None),
    "autocast around": (
        nn.TransformerEncoderLayer(16, 4),
        (torch.randn(5, 2, 16),),
        lambda: torch.autocast("cpu", torch.bfloat16),
    ),
    "autocast inside": (casting, (torch.randn(3, 4, 4),), None),
    "in place": (changing, tuple(torch.randn(4, 4, requires_grad=True) for _ in "xy"), None),
    "factories": (making, (torch.randn(3, 4),), None),
    "views": (looking, (torch.randn(4, 4),), None),
    "views of what requires a gradient": (looking, (torch.randn(4, 4, requires_grad=True),), None),
    "vmap and grad": (mapping, (torch.randn(3, 4),), None),
}


SLOW = (
    "attention", "autocast around", "views of what requires a gradient", "convolutions, training",
    "convolutions, inference",
)  # fmt: skip
CASES = [
    pytest.param(name, dynamic, marks=[pytest.mark.slow] if dynamic and name in SLOW else [])
    for name in SUBJECTS
    for dynamic in (False, True)
]


@pytest.mark.parametrize(("subject", "dynamic"), CASES)
def test_operators_are_those_that_really_run(subject: str, dynamic: bool) -> None:
    function, args, context = SUBJECTS[subject]
    compare(function, *args, dynamic=dynamic, context=context() if context else None)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_operators_that_depend_on_data(dynamic: bool) -> None:
    wanted = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    with torch._dynamo.config.patch(wanted):
        compare(counting, torch.randn(3, 4), dynamic=dynamic)


def test_graphs_within_a_graph_have_operators_of_their_own() -> None:
    seen = []

    def backend(module: Any, inputs: Any) -> Any:
        seen.append((with_calls(portable(module), module), aten_calls(module)))
        return module.forward

    def function(x: Any) -> Any:
        x = checkpoint(lambda q: q @ WEIGHT, x, use_reentrant=False)
        return torch.cond(x.sum() > 0, lambda q: q.cos(), lambda q: q.relu(), (x,))

    torch.compile(function, backend=backend)(torch.randn(3, 4))
    graph, calls = seen[0]
    inner = {
        node.name: [[c.op for n in g.nodes for c in n.calls] for g in node.graphs]
        for node in graph.nodes
        if node.graphs
    }
    assert inner == {
        "tag_activation_checkpoint": [["aten.mm.default"]],
        "cond": [["aten.cos.default"], ["aten.relu.default"]],
    }
    assert [call.op for call in calls["cond"]] == ["aten.cos.default", "aten.relu.default"]


def calls_of(function: Any, *args: Any, dynamic: bool = False) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def backend(module: Any, inputs: Any) -> Any:
        seen.update({node.name: node for node in with_calls(portable(module), module).nodes})
        return module.forward

    torch.compile(function, backend=backend, dynamic=dynamic)(*args)
    return seen


def test_a_size_is_dynamic_in_the_operators_that_it_reaches() -> None:
    layer = nn.Linear(8, 6)
    found = calls_of(lambda x: layer(x), torch.randn(3, 5, 8), dynamic=True)
    node = next(node for node in found.values() if node.target.endswith("linear"))
    batch, length, _ = found["l_x_"].outputs[0].shape
    product = next(call for call in node.calls if call.op == "aten.addmm.default")
    assert product.inputs[1].shape in (
        (f"{batch}*{length}", 8),
        (f"{length}*{batch}", 8),
    )
    assert product.inputs[2].shape == (8, 6)
    assert product.inputs[1].size_bytes is None


def test_a_size_that_a_guard_ties_down_is_still_told() -> None:
    """The number of features fixes what the convolution may give: no other size can be tried."""
    body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 5))
    found = calls_of(lambda x: body(x), torch.randn(4, 3, 8, 8), dynamic=True)
    assert all(node.calls is not None for node in found.values())


def test_arguments_are_named_as_the_schema_names_them() -> None:
    layer = nn.Conv2d(4, 4, 3, groups=2)
    found = calls_of(lambda x: layer(x), torch.randn(1, 4, 8, 8))
    call = next(node for node in found.values() if "conv" in node.target).calls[0]
    assert call.op == "aten.convolution.default"
    assert call.constants["groups"] == 2
    assert call.constants["stride"] == [1, 1]
    assert call.constants["transposed"] is False


def test_a_module_that_was_left_whole_is_run_with_its_parameters() -> None:
    module = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    for node in module.graph.nodes:
        if node.op == "placeholder":
            node.meta["example_value"] = torch.randn(2, 4)
    calls = aten_calls(module)
    assert [call.op for call in calls["_0"]][-1] == "aten.addmm.default"
    assert calls["_1"] is None  # Nobody noted what the layer before it gives.


def test_a_custom_operator_is_one_call() -> None:
    @torch.library.custom_op("compilescope_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    found = calls_of(lambda x: twice(x) + 1, torch.randn(3))
    ops = [call.op for node in found.values() for call in node.calls]
    assert ops == ["compilescope_tests.twice.default", "aten.add.Tensor"]


def test_nothing_is_logged_and_nothing_is_drawn() -> None:
    """An operator that refuses is an answer; the program's random numbers stay its own."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    log = logging.getLogger("torch")
    log.addHandler(handler)
    try:
        torch.manual_seed(7)
        torch.compile(making, backend="eager")(torch.ones(3, 4))
        wanted = torch.rand(3)
        torch._dynamo.reset()
        torch.manual_seed(7)
        calls_of(making, torch.ones(3, 4))
        assert torch.equal(torch.rand(3), wanted)
        calls_of(Convolutions(), torch.randn(4, 3, 8, 8), dynamic=True)
    finally:
        log.removeHandler(handler)
    assert [record.getMessage() for record in records if record.levelno > logging.INFO] == []
