"""What makes localising hard: writes, random numbers, breaks, free sizes, modes, company."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx import GraphModule, Node

from compilescope.base.errors import ToolError
from compilescope.measure.diff.localize import Localization, localize
from compilescope.measure.tensors.tolerances import ComparisonConfig
from diff.localize.planting import Planted, called, instead, named

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch.set_num_threads(threads)


class Layer(nn.Module):
    def __init__(self, size: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.up = nn.Linear(size, 2 * size)
        self.down = nn.Linear(2 * size, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


def layers(count: int, **more: Any) -> nn.Sequential:
    return nn.Sequential(*[Layer(**more) for _ in range(count)])


def tanh_gelu(gm: GraphModule, node: Any) -> None:
    node.kwargs = {"approximate": "tanh"}


def names(found: Localization) -> list[str]:
    return [guilty.node for guilty in found.guilty]


def most(found: Localization) -> float:
    return 2 * math.log2(found.nodes) + 8


class Writing(nn.Module):
    """Buffers, views and tensors that are written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.linear = nn.Linear(8, 8)
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        y = self.norm(x).relu() + 0
        y += self.mean
        y[:, 0] = 1.0
        y.view(-1).mul_(2)
        return y.sum(1) * self.mean.sum()


class Broken(nn.Module):
    """Three graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = Layer(), Layer(), Layer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        torch._dynamo.graph_break()
        x = self.b(x)
        torch._dynamo.graph_break()
        return torch.exp(self.c(x))


class NaNs(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.log(x).sum(), (x / 0).softmax(-1), torch.sqrt(x)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 8)
        self.out = nn.Linear(8, 9, bias=False)
        self.out.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.table(ids)))


class Casting(nn.Module):
    """An autocast region with a region without gradients inside."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.gelu(self.a(x))
            with torch.no_grad():
                z = torch.sigmoid(self.b(x))
            y = self.b(y) * z
        return torch.softmax(y.float(), -1)


RIGHT: dict[str, tuple[Callable[[], Any], torch.Tensor, dict[str, Any]]] = {
    "random": (lambda: layers(2, dropout=0.3).train(), torch.randn(3, 8), {}),
    "random, trained": (lambda: layers(2, dropout=0.3).train(), torch.randn(3, 8), {"train": True}),
    "NaN": (NaNs, torch.randn(4, 8), {}),
    "tied": (Tied, torch.randint(0, 9, (3, 4)), {"train": True}),
    "in place": (Writing, torch.randn(4, 8), {"train": True}),
    "breaks": (Broken, torch.randn(4, 8), {"train": True}),
    "dynamic": (lambda: layers(2), torch.randn(3, 8), {"dynamic": True}),
    "autocast": (Casting, torch.randn(4, 8), {"train": True}),
}


SHOWN_BY_OTHERS = ("random", "breaks")
"""In training, and in `test_breaks_and_which_graph`."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow if c in SHOWN_BY_OTHERS else ()) for c in RIGHT],
)
def test_a_right_backend_is_not_accused(case: str) -> None:
    make, value, more = RIGHT[case]
    found = localize(make(), (value,), test_backend="aot_eager", **more)
    assert found.guilty == ()
    assert "right" in found.reason
    assert found.compiles == found.graphs


def test_argmax_of_near_ties_is_nobodys_fault() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = (x * 3.0).sum(1) / 3.0
        return torch.argmax(torch.stack([y, x.sum(1)]), 0)

    def other_order(gm: GraphModule, inputs: Any) -> Any:
        for node in gm.graph.nodes:
            if node.op == "call_method" and node.target == "sum":
                node.op = "call_function"
                node.target = lambda x, dim: x.flip(dim).cumsum(dim).select(dim, -1)
        gm.recompile()
        return gm

    found = localize(model, (torch.rand(200, 1000),), test_backend=other_order)
    assert found.guilty == (), found


def test_what_is_not_written_back() -> None:
    def forget(gm: GraphModule, node: Any) -> None:
        node.target = "add"

    # The one of `mean`: that of the count of batches adds a number.
    backend = Planted(lambda n: called(n) == "add_" and isinstance(n.args[1], Node), forget)
    model = Writing()
    before = model.mean.clone()
    found = localize(model, (torch.randn(4, 8),), test_backend=backend)
    assert names(found) == backend.names
    assert "written" in found.guilty[0].wrong
    assert torch.equal(model.mean, before), "the user's buffers are as they were"


def test_a_view_that_is_written_through() -> None:
    def thrice(gm: GraphModule, node: Any) -> None:
        node.args = (node.args[0], 3)

    backend = Planted(lambda n: called(n) == "mul_" and n.args[1] == 2, thrice)
    found = localize(Writing(), (torch.randn(4, 8),), test_backend=backend, train=True)
    assert names(found) == backend.names


def test_what_is_kept_from_the_time_of_compilation() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8)
            self.register_buffer("scale", torch.ones(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.linear(x) * self.scale)

    def stale(gm: GraphModule, inputs: Any) -> Any:
        holders = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
        kept = {i: inputs[i].clone() for i, name in enumerate(holders) if "scale" in name}
        return lambda *given: gm(*[kept.get(i, value) for i, value in enumerate(given)])

    found = localize(Scaled(), (torch.randn(4, 8),), test_backend=stale)
    [guilty] = found.guilty
    assert guilty.target.endswith("mul")


def test_breaks_and_which_graph() -> None:
    backend = Planted(named("exp"), instead(torch.expm1))
    found = localize(Broken(), (torch.randn(4, 8),), test_backend=backend, train=True)
    [guilty] = found.guilty
    assert guilty.graph == 2 and found.graphs == 3
    assert guilty.source == "return torch.exp(self.c(x))"
    assert found.compiles == backend.calls <= most(found)


def test_a_region_is_not_cut_apart() -> None:
    backend = Planted(named("sigmoid"), instead(torch.tanh))
    found = localize(Casting(), (torch.randn(4, 8),), test_backend=backend, train=True)
    assert names(found) == backend.names
    assert found.guilty[0].input_ranges[0].dtype == "bfloat16"


@pytest.mark.parametrize("dynamic", [None, True])
def test_free_sizes(dynamic: bool | None) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = F.gelu((x * 2).reshape(x.shape[0] * 2, -1))
        return (y * x.shape[1] ** 0.5).softmax(-1)

    backend = Planted(named("gelu"), tanh_gelu)
    found = localize(model, (torch.randn(4, 6),), test_backend=backend, dynamic=dynamic)
    assert names(found) == backend.names


def test_only_large_values_go_wrong() -> None:
    class Large(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(5)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for number, layer in enumerate(self.layers):
                x = torch.relu(layer(x) * (500.0 if number == 3 else 1.0))
            return x

    def clipped(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).clamp(max=20)

    backend = Planted(named("relu"), instead(clipped), all_of_them=True)
    found = localize(Large(), (torch.randn(4, 8),), test_backend=backend)
    assert found.guilty and all(guilty.target.endswith("relu") for guilty in found.guilty)
    assert all((guilty.input_ranges[0].largest or 0) > 20 for guilty in found.guilty)


class Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            weights = torch.softmax(torch.matmul(x, x.transpose(-1, -2)), -1)
            x = x + torch.tanh(torch.matmul(weights, x))
        return x


def fuse_softmax(gm: GraphModule, inputs: Any) -> Any:
    """A wrong rewrite of softmax(...) @ ... : neither alone is touched."""
    for node in list(gm.graph.nodes):
        if called(node) == "matmul" and called(node.args[0]) == "softmax":
            with gm.graph.inserting_after(node):
                scaled = gm.graph.call_function(torch.mul, (node, 1.01))
            node.replace_all_uses_with(scaled, delete_user_cb=lambda user: user is not scaled)
    gm.recompile()
    return gm


@pytest.mark.parametrize("train", [False, True], ids=["forward", "train"])
def test_what_goes_wrong_only_together(train: bool) -> None:
    value = torch.randn(2, 4, 4, requires_grad=train)
    found = localize(Attention(), (value,), test_backend=fuse_softmax, train=train)
    assert len(found.guilty) == 3
    for guilty in found.guilty:
        assert not guilty.alone and guilty.target.endswith("matmul")
        assert [place.target.rsplit(".")[-1] for place in guilty.region] == ["softmax", "matmul"]
        assert "none is wrong alone" in guilty.reason
    assert found.compiles <= most(found)


@pytest.mark.parametrize("which", [*(pytest.param(n, marks=pytest.mark.slow) for n in (0, 3)), -1])
def test_a_backend_that_counts(which: int) -> None:
    """It spoils the first, the fourth or the last gelu of any graph: in a part that is another."""

    def backend(gm: GraphModule, inputs: Any) -> Any:
        found = [n for n in gm.graph.nodes if n.op.startswith("call") and called(n) == "gelu"]
        if found and which < len(found):
            tanh_gelu(gm, found[which])
        gm.recompile()
        return gm

    found = localize(layers(6), (torch.randn(3, 8),), test_backend=backend)
    assert names(found) == [f"gelu_{which % 6}" if which else "gelu"]
    assert found.compiles <= most(found)


def test_a_backend_with_random_numbers_of_its_own() -> None:
    def backend(gm: GraphModule, inputs: Any) -> Any:
        for node in gm.graph.nodes:
            if node.name == "gelu_1":
                tanh_gelu(gm, node)
        gm.recompile()

        def run(*given: Any) -> Any:
            torch.manual_seed(7)
            return gm(*given)

        return run

    model = layers(3, dropout=0.4).train()
    found = localize(model, (torch.randn(3, 8),), test_backend=backend, train=True)
    assert names(found) == ["gelu_1"]
    assert "its own random numbers" in found.notes[0]
    assert found.compiles <= most(found)


def test_an_operation_with_several_results() -> None:
    def model(x: torch.Tensor) -> Any:
        values, places = x.topk(3, -1)
        return values.exp(), places, x.max(-1)[0].sin()

    def smallest(gm: GraphModule, node: Any) -> None:
        node.kwargs = {"largest": False}

    backend = Planted(named("topk"), smallest)
    found = localize(model, (torch.randn(4, 8),), test_backend=backend)
    assert names(found) == backend.names


def test_operators_over_operators() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))
        return torch.tanh(F.gelu(y * 2))

    backend = Planted(named("gelu"), tanh_gelu)
    found = localize(model, (torch.randn(4, 4),), test_backend=backend)
    assert names(found) == backend.names


def test_a_backend_that_raises() -> None:
    def backend(gm: GraphModule, inputs: Any) -> Any:
        raise ValueError("no such chip")

    found = localize(layers(1), (torch.randn(3, 8),), test_backend=backend)
    assert found.guilty == () and "no such chip" in found.reason
    assert found.reason.startswith("inconclusive")


def test_a_backend_that_takes_no_part() -> None:
    """It raises on anything but the whole graph: there is nothing to bisect, and that is said."""

    def backend(gm: GraphModule, inputs: Any) -> Any:
        calls = [n for n in gm.graph.nodes if n.op.startswith("call")]
        if len(calls) != 18:
            raise ValueError("not the whole graph")
        tanh_gelu(gm, next(n for n in calls if n.name == "gelu_1"))
        gm.recompile()
        return gm

    found = localize(layers(3), (torch.randn(3, 8),), test_backend=backend)
    [guilty] = found.guilty
    assert guilty.node == "gelu_1" and not guilty.alone
    assert any("raised" in note for note in found.notes)


def test_nothing_captured() -> None:
    found = localize(lambda x: x, (3,), test_backend="eager")
    assert found.guilty == () and "no graph" in found.reason


def test_a_program_that_does_not_run() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.zeros(99, 2)

    with pytest.raises(ToolError, match="does not run"):
        localize(model, (torch.randn(3, 8),), test_backend="eager")


def test_tolerances_that_the_user_gave() -> None:
    backend = Planted(named("gelu"), tanh_gelu)
    loose = ComparisonConfig(atol=0.1, rtol=0.1)
    found = localize(layers(2), (torch.randn(3, 8),), test_backend=backend, config=loose)
    assert found.guilty == ()


def test_as_json() -> None:
    import json

    backend = Planted(named("gelu"), tanh_gelu)
    found = localize(layers(2), (torch.randn(3, 8),), test_backend=backend)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["compiles"] == backend.calls
    assert told["guilty"][0]["node"] == "gelu_1" and told["guilty"][0]["stage"] == "forward"
    assert told["guilty"][0]["aten"] == ["aten.gelu.default"]
