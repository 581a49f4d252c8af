"""Bugs planted in backends are found: the operation is named, within the promised compilations."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx import Graph, GraphModule

from compilescope.measure.diff.localize import Localization, localize
from diff.localize.planting import (
    BUGS,
    Planted,
    Stack,
    called,
    instead,
    named,
    planted,
)

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch.set_num_threads(threads)


SOURCES = {
    "gelu by tanh": "inner = F.gelu(self.up(x))",
    "wrong eps": "q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)",
    "dropped bias": "q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)",
    "half accumulation": "weights = (torch.matmul(q, k.transpose(-1, -2)) / 3.0)"
    ".masked_fill(future, -1e9)",
    "swapped operands": "x = torch.sub(x, self.down(inner))",
    "off-by-one slice": "rest = torch.cat([x[..., 2:], x[..., :2]], dim=-1)",
    "stale buffer": "self.seen.add_(x.detach().mean((0, 1)))",
    "wrong mask": "weights = (torch.matmul(q, k.transpose(-1, -2)) / 3.0)"
    ".masked_fill(future, -1e9)",
    "wrong dim": "x = x + torch.matmul(torch.softmax(weights, dim=-1), v)",
    "bad rounding": "return x + torch.round(rest * 64) / 64 + torch.tanh(x)",
}


def most(nodes: int) -> float:
    return 2 * math.log2(nodes) + 8


def names(found: Localization) -> list[str]:
    return [guilty.node for guilty in found.guilty]


def check(found: Localization, backend: Planted, ending: str) -> None:
    assert names(found) == backend.names, found.reason
    [guilty] = found.guilty
    assert guilty.target.endswith(ending)
    assert guilty.alone
    assert found.compiles == backend.calls <= most(found.nodes)


FEW = ("gelu by tanh", "half accumulation", "stale buffer", "off-by-one slice")
"""An option, an operator taken apart, a write and a view: they are found in different ways."""


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=() if bug in FEW else pytest.mark.slow) for bug in BUGS]
)
def test_each_bug(bug: str) -> None:
    backend = planted(bug)
    found = localize(Stack(2), (torch.randn(2, 5, 8),), test_backend=backend)
    check(found, backend, BUGS[bug][2])
    [guilty] = found.guilty
    assert guilty.stage == "forward"
    assert guilty.file is not None and guilty.file.endswith("planting.py")
    assert guilty.source == SOURCES[bug]
    assert guilty.error_after is not None and guilty.error_after > 1e-5
    assert guilty.error_before is None or guilty.error_before < 1e-6
    assert guilty.input_ranges


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_in_training(bug: str) -> None:
    backend = planted(bug)
    found = localize(Stack(2), (torch.randn(2, 5, 8),), test_backend=backend, train=True)
    check(found, backend, BUGS[bug][2])
    assert found.guilty[0].stage == "forward"


LARGER = [(bug, depth) for bug in BUGS for depth in (1, 10)] + [
    ("gelu by tanh", 50),
    ("swapped operands", 50),
]


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "depth"), LARGER)
def test_each_bug_in_larger_models(bug: str, depth: int) -> None:
    backend = planted(bug)
    found = localize(Stack(depth), (torch.randn(2, 5, 8),), test_backend=backend)
    check(found, backend, BUGS[bug][2])


def chain(count: int) -> GraphModule:
    """A graph of so many operations, each hanging on the one before."""
    graph = Graph()
    value = graph.placeholder("x")
    for number in range(count):
        if number % 3 == 1:
            value = graph.call_function(torch.sub, (value, 0.01))
        else:
            value = graph.call_function(torch.mul, (value, 1.001 if number % 3 else 0.999))
    graph.output((value,))
    return GraphModule(nn.Module(), graph)


@pytest.mark.parametrize("count", [10, 100, pytest.param(2000, marks=pytest.mark.slow)])
def test_long_graphs(count: int) -> None:
    backend = planted("swapped operands")
    found = localize(chain(count), (torch.randn(40) * 3,), test_backend=backend)
    check(found, backend, "sub")
    assert found.nodes == count


def test_several_bugs_at_once() -> None:
    def spoil(gm: GraphModule, node: Any) -> None:
        for bug in ("gelu by tanh", "wrong eps", "dropped bias"):
            if BUGS[bug][0](node):
                BUGS[bug][1](gm, node)

    wanted = ["inner_2", "layer_norm_1", "linear_7"]
    backend = Planted(lambda node: node.name in wanted, spoil, all_of_them=True)
    found = localize(Stack(4), (torch.randn(2, 5, 8),), test_backend=backend)
    assert sorted(names(found)) == wanted
    assert found.compiles == backend.calls <= most(found.nodes)


@pytest.mark.parametrize(
    "train", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["forward", "train"]
)
def test_an_operator_that_is_wrong_everywhere(train: bool) -> None:
    backend = planted("gelu by tanh", all_of_them=True)
    found = localize(Stack(4), (torch.randn(2, 5, 8),), test_backend=backend, train=train)
    assert sorted(names(found)) == sorted(backend.names or ())
    assert len(found.guilty) == 4
    assert found.compiles == backend.calls <= most(found.nodes)


@pytest.mark.slow
def test_everything_at_once() -> None:
    backends = [planted(bug) for bug in BUGS]

    def backend(gm: GraphModule, inputs: Any) -> Any:
        for one in backends:
            gm = one(gm, inputs)
        return gm

    found = localize(Stack(2), (torch.randn(2, 5, 8),), test_backend=backend)
    assert set(names(found)) == {one.names[0] for one in backends if one.names}
    assert found.compiles <= found.budget


class Spoilt(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        [x] = ctx.saved_tensors
        return grad * (1 - torch.tanh(x)) ** 2


def test_backward_of_a_backend_that_wraps_autograd() -> None:
    def spoilt(x: torch.Tensor) -> torch.Tensor:
        return Spoilt.apply(x)

    backend = Planted(named("tanh"), instead(spoilt))
    found = localize(Stack(3), (torch.randn(2, 5, 8),), test_backend=backend, train=True)
    check(found, backend, "tanh")
    assert found.guilty[0].stage == "backward"
    # The forward is right: without training nothing is wrong.
    assert not localize(Stack(3), (torch.randn(2, 5, 8),), test_backend=backend).guilty


def spoil_gelu(gm: GraphModule) -> None:
    for node in gm.graph.nodes:
        if node.target is torch.ops.aten.gelu_backward.default:
            node.kwargs = {"approximate": "tanh"}


def scale_softmax(gm: GraphModule) -> None:
    for node in list(gm.graph.nodes):
        if node.target is torch.ops.aten._softmax_backward_data.default:
            with gm.graph.inserting_after(node):
                scaled = gm.graph.call_function(torch.ops.aten.mul.Tensor, (node, 1.01))
            node.replace_all_uses_with(scaled, delete_user_cb=lambda user: user is not scaled)


@pytest.mark.parametrize(
    ("spoil", "target", "aten"),
    [
        (spoil_gelu, "gelu", "aten.gelu_backward"),
        pytest.param(scale_softmax, "softmax", "_softmax_backward", marks=pytest.mark.slow),
    ],
)
def test_backward_of_an_aot_backend(spoil: Any, target: str, aten: str) -> None:
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def forward(gm: GraphModule, _: Any) -> Any:
        return make_boxed_func(gm.forward)

    def backward(gm: GraphModule, _: Any) -> Any:
        spoil(gm)
        gm.recompile()
        return make_boxed_func(gm.forward)

    backend = aot_autograd(fw_compiler=forward, bw_compiler=backward)
    model = nn.Sequential(nn.Linear(8, 8), Head(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    found = localize(model, (torch.randn(4, 8),), test_backend=backend, train=True)
    [guilty] = found.guilty
    assert guilty.stage == "backward" and guilty.target.endswith(target)
    assert guilty.aten_node is not None and aten in guilty.aten_node
    assert found.compiles <= most(found.nodes)


class Head(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(F.gelu(x) * 2, dim=-1)


@pytest.mark.slow
def test_one_gelu_of_a_bert() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=48, num_hidden_layers=12, num_attention_heads=4, intermediate_size=96,
        vocab_size=100, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.BertModel(config).eval()

    def seventh(gm: GraphModule, inputs: Any) -> Any:
        found = [n for n in gm.graph.nodes if n.op.startswith("call") and called(n) == "gelu"]
        if len(found) >= 7:
            found[6].kwargs = {"approximate": "tanh"}
        gm.recompile()
        return gm

    ids = torch.randint(0, 100, (2, 9))
    found = localize(model, (ids,), test_backend=seventh)
    [guilty] = found.guilty
    assert guilty.target.endswith("gelu") and guilty.module.startswith("encoder.layer.6.")
    assert not guilty.alone and found.compiles <= most(found.nodes)

    def by_name(node: Any) -> bool:
        return called(node) == "gelu"

    backend = Planted(by_name, BUGS["gelu by tanh"][1])
    check(localize(model, (ids,), test_backend=backend), backend, "gelu")
