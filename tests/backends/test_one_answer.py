"""One device, one answer: the mock backends and the adapter agree, at every level of the graph.

Each model is captured once by Dynamo; its graph then goes to all of them. Inductor is left out:
graphs are judged before it gets them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import compilescope.backends.mock.aot  # noqa: E402
from compilescope import (  # noqa: E402
    ConstraintError,
    MockAdapter,
    aot_mock_backend,
    mock_backend,
)
from compilescope.backends.device_files import shipped_devices  # noqa: E402

Facts = set[tuple[str, int | None]]


class Case(NamedTuple):
    """A model, and what it is called with."""

    forward: Callable[..., Any]
    parts: dict[str, Any]
    inputs: tuple[Any, ...]


class Model(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case
        for name, part in case.parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.case.forward(self, *inputs)


def mlp(self: Any, x: Any) -> Any:
    x = F.gelu(self.a(x))
    return self.b(x)


def cnn(self: Any, x: Any) -> Any:
    x = F.relu(self.norm(self.conv(x)))
    x = F.max_pool2d(x, 2)
    x = F.adaptive_avg_pool2d(x, 1)
    return self.head(x.flatten(1))


def attention(self: Any, x: Any) -> Any:
    batch, length, width = x.shape
    q, k, v = (layer(x).view(batch, length, 4, -1).transpose(1, 2) for layer in self.layers)
    scores = q @ k.transpose(-2, -1) / math.sqrt(width // 4)
    mixed = scores.softmax(-1) @ v
    return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def fused_attention(self: Any, x: Any) -> Any:
    batch, length, width = x.shape
    q, k, v = self.qkv(x).chunk(3, -1)
    q, k, v = (part.view(batch, length, 4, -1).transpose(1, 2) for part in (q, k, v))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return self.out(mixed.transpose(1, 2).contiguous().view(batch, length, width))


def whole(self: Any, *inputs: Any) -> Any:
    result = self.layer(*inputs)
    return result[0] if isinstance(result, tuple) else result


def lstm_cell(self: Any, x: Any, h: Any, c: Any) -> Any:
    gates = self.x(x) + self.h(h)
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def norm(self: Any, x: Any) -> Any:
    centered = x - x.mean(-1, keepdim=True)
    x = centered * torch.rsqrt(x.var(-1, keepdim=True) + 1e-5)
    return self.norm(x)


def embedding(self: Any, words: Any) -> Any:
    x = self.table(words).mean(1)
    return self.head(x)


def residual(self: Any, x: Any) -> Any:
    y = F.relu(self.a(x), inplace=True)
    x = x + self.b(y)
    x += 1
    return x


def depthwise(self: Any, x: Any) -> Any:
    x = F.relu6(self.depth(x))
    return self.point(x)


def training(self: Any, x: Any, wanted: Any) -> Any:
    x = F.dropout(F.relu(self.a(x)), 0.1, self.training)
    return F.cross_entropy(self.b(x), wanted)


def transposed(self: Any, x: Any) -> Any:
    y = x.t()
    return (y + 1) @ x


def written(self: Any, x: Any) -> Any:
    x = x.clone()
    x[:, 0] = 1
    x[:, 1] += 2
    return x * 2


def broadcast(self: Any, x: Any) -> Any:
    first = x[:1].expand_as(x)
    return x + first


def best(self: Any, x: Any) -> Any:
    values, places = x.topk(16)
    return values + x.gather(1, places)


def returned_view(self: Any, x: Any) -> Any:
    return (x * 2).t()


def rotated(self: Any, x: Any) -> Any:
    left, right = x.chunk(2, -1)
    return x * 2 + torch.cat((-right, left), -1)


def products(self: Any, x: Any) -> Any:
    y = torch.bmm(x, x.mT)
    return torch.einsum("bst,btd->bsd", y, x) + 1


def half(self: Any, x: Any) -> Any:
    x = x.to(torch.bfloat16).softmax(-1)
    return F.layer_norm(x, x.shape[-1:]).float()


def _cases() -> dict[str, Case]:
    linear, image, tokens, rows = nn.Linear, (16, 4, 16, 16), (2, 16, 64), (16, 32)
    random = torch.randn
    two = {"a": linear(32, 64), "b": linear(64, 16)}
    convs = {"conv": nn.Conv2d(4, 16, 3), "norm": nn.BatchNorm2d(16), "head": linear(16, 16)}
    depth = {"depth": nn.Conv2d(16, 16, 3, groups=16), "point": nn.Conv2d(16, 32, 1)}
    heads = {"layers": nn.ModuleList(linear(64, 64) for _ in range(3)), "out": linear(64, 64)}
    block = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True)
    states = (random(rows), random(16, 16), random(16, 16))
    table = {"table": nn.Embedding(64, 32), "head": linear(32, 16)}
    return {
        "mlp": Case(mlp, two, (random(rows),)),
        "odd mlp": Case(mlp, {"a": linear(30, 64), "b": linear(64, 10)}, (random(16, 30),)),
        "mlp in float64": Case(
            mlp,
            {"a": linear(32, 64).double(), "b": linear(64, 16).double()},
            (random(rows).double(),),
        ),
        "cnn": Case(cnn, convs, (random(image),)),
        "attention": Case(attention, heads, (random(tokens),)),
        "fused attention": Case(
            fused_attention, {"qkv": linear(64, 192), "out": linear(64, 64)}, (random(tokens),)
        ),
        "transformer block": Case(whole, {"layer": block}, (random(tokens),)),
        "multi-head attention": Case(
            whole, {"layer": nn.MultiheadAttention(64, 4)}, (random(tokens),) * 3
        ),
        "lstm cell": Case(lstm_cell, {"x": linear(32, 64), "h": linear(16, 64)}, states),
        "norm": Case(norm, {"norm": nn.LayerNorm(32)}, (random(rows),)),
        "embedding": Case(embedding, table, (torch.randint(0, 64, (16, 8)),)),
        "residual": Case(residual, {"a": linear(32, 32), "b": linear(32, 32)}, (random(rows),)),
        "depthwise": Case(depthwise, depth, (random(2, 16, 8, 8),)),
        "training": Case(training, two, (random(rows), torch.randint(0, 16, (16,)))),
        "transposed": Case(transposed, {}, (random(rows),)),
        "written": Case(written, {}, (random(rows),)),
        "broadcast": Case(broadcast, {}, (random(rows),)),
        "best": Case(best, {}, (random(rows),)),
        "returned view": Case(returned_view, {}, (random(rows),)),
        "rotated": Case(rotated, {}, (random(tokens),)),
        "products": Case(products, {}, (random(tokens),)),
        "half": Case(half, {}, (random(rows),)),
    }


NAMES = tuple(_cases())
QUICK = (
    "mlp", "odd mlp", "mlp in float64", "attention", "embedding", "residual", "transposed",
    "written", "broadcast", "returned view",
)  # fmt: skip
REFUSED = {
    "generic": {"mlp in float64", "transposed", "written", "returned view"},
    "npu-a": {
        "odd mlp", "mlp in float64", "multi-head attention", "lstm cell", "transposed", "written",
        "returned view", "rotated", "half",
    },
}  # fmt: skip
"""In inference mode, whoever is asked."""


@pytest.fixture(autouse=True)
def without_inductor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def judge_only(module: Any, inputs: Any, keeper: Any, options: Any = None) -> Any:
        keeper.before_lowering("inference")
        return module.forward

    monkeypatch.setattr(compilescope.backends.mock.aot, "lower", judge_only)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def answers(case: Case, device: str, *, gradients: bool) -> dict[str, Facts]:
    """Who is asked -> rules and lines that the device has something against, in the forward."""
    found: dict[str, Facts] = {}
    asked: dict[str, Any] = {
        "mock_backend": mock_backend(device=device, repro=False),
        "aot_mock_backend": aot_mock_backend(device=device, repro=False),
        "MockAdapter": MockAdapter(device, strict=True),
    }
    if not gradients:
        asked["MockAdapter, dynamo"] = MockAdapter(device, strict=True, level="dynamo")

    def ask(module: Any, inputs: Any) -> Any:
        for name, backend in asked.items():
            found[name] = _facts(backend, module, inputs)
        return module.forward

    model = Model(case).train(gradients)
    with torch.set_grad_enabled(gradients):
        torch.compile(model, backend=ask)(*case.inputs)
    return found


def _facts(backend: Any, module: Any, inputs: Any) -> Facts:
    try:
        backend(module, inputs)
    except ConstraintError as error:
        forward = [each for each in error.violations if each.stage != "aot_backward"]
        return {(each.rule, each.line) for each in forward}
    return set()


def check(name: str, device: str, *, gradients: bool = False) -> Facts:
    found = answers(_cases()[name], device, gradients=gradients)
    said = found.pop("mock_backend")
    assert found == dict.fromkeys(found, said), (name, device, gradients)
    return said


@pytest.mark.parametrize("name", QUICK)
def test_all_of_them_say_the_same(name: str) -> None:
    assert bool(check(name, "npu-a")) == (name in REFUSED["npu-a"])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("device", [each.name for each in shipped_devices()])
def test_and_of_every_device(name: str, device: str) -> None:
    refused = check(name, device)
    assert device not in REFUSED or bool(refused) == (name in REFUSED[device])
    check(name, device, gradients=True)


def test_an_aligned_mlp_goes_to_the_device_whole() -> None:
    case = _cases()["mlp"]
    for level in ("aten", "dynamo"):
        torch._dynamo.reset()
        adapter = MockAdapter("npu-a", level=level)
        with torch.no_grad():
            torch.compile(Model(case), backend=adapter)(*case.inputs)
        assert adapter.report.flops_share == 1 == adapter.report.ops_share


def test_a_training_step_is_taken_both_ways() -> None:
    case = _cases()["mlp"]
    adapter = MockAdapter("npu-a", strict=True)
    torch.compile(Model(case), backend=adapter)(*case.inputs).sum().backward()
    assert [graph.stage for graph in adapter.report.graphs] == ["aot_forward", "aot_backward"]
    assert adapter.report.flops_share == 1


@pytest.mark.slow
@pytest.mark.parametrize("device", ["npu-a", "stream-d"])
def test_views_kept_for_the_backward_pass_do_not_keep_an_island_on_the_host(device: str) -> None:
    layer = nn.TransformerDecoderLayer(32, 4, 64, 0.0, batch_first=True)
    x = torch.randn(8, 16, 32)
    adapter = MockAdapter(device)
    torch.compile(layer, backend=adapter)(x, x).sum().backward()
    islands = [island for graph in adapter.report.graphs for island in graph.islands]
    assert {island.status for island in islands} == {"emulated"}
