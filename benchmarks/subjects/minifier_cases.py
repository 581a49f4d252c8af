"""Graphs with something wrong in them: models, and backends that fail or lie about one thing.

A case is a model with its arguments, a backend, and what to look for. Each backend stands for a
kind of bug that backends have; none of them knows how large the graph around it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Interpreter

import compilescope


def _name(node: Any) -> str:
    target = node.target
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


class NoKernel(Exception):
    """What a backend raises that has no kernel for something."""


def no_softmax(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    for node in gm.graph.nodes:
        if _name(node) == "softmax":
            raise NoKernel(f"no kernel for {node.name}")
    return gm.forward


def no_cumsum_of_long_rows(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    for node in gm.graph.nodes:
        if _name(node) == "cumsum" and node.meta["example_value"].shape[-1] > 3:
            raise NoKernel(f"{node.name}: rows of {node.meta['example_value'].shape[-1]}")
    return gm.forward


def no_tanh_of_a_product(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    """A fusion that is tried on two neighbours and fails."""
    for node in gm.graph.nodes:
        if _name(node) == "tanh" and any(_name(each) == "mul" for each in node.all_input_nodes):
            raise NoKernel(f"cannot fuse {node.name} with its input")
    return gm.forward


def too_many_views(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    """Fails only where three transposes are in one graph."""
    found = [node for node in gm.graph.nodes if _name(node) == "transpose"]
    if len(found) >= 3:
        raise NoKernel("out of layouts")
    return gm.forward


def no_negative_dimension(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    for node in gm.graph.nodes:
        if _name(node) == "sum" and node.kwargs.get("keepdim"):
            raise NoKernel(f"{node.name}: keepdim is not supported")
    return gm.forward


class _Lying(Interpreter):
    """Runs the graph, with other results for some calls."""

    wrong: dict[str, Callable[..., Any]]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        if name in self.wrong:
            return self.wrong[name](*args, **kwargs)
        return super().call_function(target, args, kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        if target in self.wrong:
            return self.wrong[target](*args, **kwargs)
        return super().call_method(target, args, kwargs)


def _lying(gm: GraphModule, wrong: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    runner = _Lying(gm)
    runner.wrong = wrong
    return runner.run


def gelu_by_tanh(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    def gelu(x: Any, approximate: str = "none") -> Any:
        return torch.nn.functional.gelu(x, approximate="tanh")

    return _lying(gm, {"gelu": gelu})


def norm_with_other_eps(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    def layer_norm(
        x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
    ) -> Any:
        return torch.nn.functional.layer_norm(x, shape, weight, bias, eps=1e-3)

    return _lying(gm, {"layer_norm": layer_norm})


def dropped_bias(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    def linear(x: Any, weight: Any, bias: Any = None) -> Any:
        # Only where the layer is narrow: a tail that one kernel forgets.
        return torch.nn.functional.linear(x, weight, bias if weight.shape[0] > 8 else None)

    return _lying(gm, {"linear": linear})


def half_accumulation(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    def matmul(a: Any, b: Any) -> Any:
        return torch.matmul(a.bfloat16(), b.bfloat16()).to(a.dtype)

    return _lying(gm, {"matmul": matmul})


def infinite_at_zero(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    def sqrt(x: Any) -> Any:
        return torch.sqrt(x) + 0 / x

    return _lying(gm, {"sqrt": sqrt})


def breaks_when_run(gm: GraphModule, inputs: Any) -> Callable[..., Any]:
    def sigmoid(x: Any) -> Any:
        raise NoKernel(f"launch failed for {tuple(x.shape)}")

    return _lying(gm, {"sigmoid": sigmoid})


class Block(nn.Module):
    def __init__(self, width: int, activation: Any) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.activation = activation

    def forward(self, x: Any) -> Any:
        return x + self.down(self.activation(self.up(self.norm(x))))


def blocks(
    count: int, width: int = 16, activation: Any = torch.relu, tail: Any = None
) -> nn.Module:
    layers = [Block(width, activation) for _ in range(count)]
    return nn.Sequential(*layers, *([tail] if tail is not None else []))


class Attention(nn.Module):
    """By hand, so that its parts are operations of the graph."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = (
            each.reshape(batch, length, self.heads, -1).transpose(1, 2)
            for each in self.qkv(x).chunk(3, -1)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) * 0.25
        mixed = torch.matmul(torch.softmax(scores, -1), v)
        return x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def attention(count: int, width: int = 16, heads: int = 2) -> nn.Module:
    return nn.Sequential(*[Attention(width, heads) for _ in range(count)])


class Chain(nn.Module):
    """Many small operations, one culprit among them."""

    def __init__(self, length: int, at: int, culprit: Callable[[Any], Any]) -> None:
        super().__init__()
        self.length, self.at, self.culprit = length, at, culprit

    def forward(self, x: Any) -> Any:
        for number in range(self.length):
            x = torch.cos(x) + 0.1 if number % 2 else torch.sin(x) * 1.1
            if number == self.at:
                x = self.culprit(x)
        return x


class Branches(nn.Module):
    """Two arms that meet at the end; the culprit is in one of them."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)
        self.length = length

    def forward(self, x: Any) -> Any:
        a, b = self.left(x), self.right(x)
        for number in range(self.length):
            a, b = torch.cos(a) + b, torch.sin(b)
            if number == self.length // 2:
                b = torch.tanh(a * 2)
        return a * b, a.sum()


@dataclass(frozen=True)
class Case:
    """What to make smaller, and what must stay."""

    name: str
    predicate: str
    model: Callable[[], Any]
    shape: tuple[int, ...]
    backend: Any = None
    constraints: tuple[Any, ...] = ()


def _refusing(*ops: str) -> tuple[Any, ...]:
    return (compilescope.UnsupportedOpsConstraint(list(ops)),)


def _erf(x: Any) -> Any:
    return torch.erf(x)


def _narrow(x: Any) -> Any:
    return x.to(torch.float16).float()


def _root(x: Any) -> Any:
    return torch.sqrt(torch.relu(x - x.amax()))


def _summed(x: Any) -> Any:
    return x / x.abs().sum(-1, keepdim=True)


CASES = (
    Case(
        "refused erf, chain",
        "violation",
        lambda: Chain(200, 120, _erf),
        (4, 8),
        constraints=_refusing("aten.erf"),
    ),
    Case(
        "refused dtype, chain",
        "violation",
        lambda: Chain(60, 20, _narrow),
        (4, 8),
        constraints=(compilescope.DtypeConstraint(["float32"]),),
    ),
    Case(
        "refused addmm, blocks",
        "violation",
        lambda: blocks(5, tail=nn.Linear(16, 5)),
        (4, 16),
        constraints=(compilescope.ShapeConstraint(4),),
    ),
    Case("softmax, attention", "crash", lambda: attention(2), (2, 5, 16), no_softmax),
    Case(
        "softmax, 500 nodes",
        "crash",
        lambda: nn.Sequential(Chain(260, 10, torch.cos), nn.Softmax(-1), Chain(260, 10, torch.cos)),
        (4, 8),
        no_softmax,
    ),
    Case(
        "long cumsum, chain",
        "crash",
        lambda: Chain(100, 70, lambda x: x.cumsum(-1)),
        (4, 8),
        no_cumsum_of_long_rows,
    ),
    Case("fusion of two, branches", "crash", lambda: Branches(30), (4, 8), no_tanh_of_a_product),
    Case("three transposes, attention", "crash", lambda: attention(2), (2, 5, 16), too_many_views),
    Case(
        "one argument, chain",
        "crash",
        lambda: Chain(60, 40, _summed),
        (4, 8),
        no_negative_dimension,
    ),
    Case(
        "fails when run, chain",
        "crash",
        lambda: Chain(120, 100, torch.sigmoid),
        (4, 8),
        breaks_when_run,
    ),
    Case(
        "gelu by tanh, blocks",
        "diff",
        lambda: blocks(8, 16, nn.functional.gelu),
        (4, 16),
        gelu_by_tanh,
    ),
    Case("other eps, blocks", "diff", lambda: blocks(4, 16), (4, 16), norm_with_other_eps),
    Case(
        "dropped bias, blocks",
        "diff",
        lambda: blocks(6, 16, tail=nn.Linear(16, 4)),
        (4, 16),
        dropped_bias,
    ),
    Case(
        "half accumulation, attention", "diff", lambda: attention(2), (2, 5, 16), half_accumulation
    ),
    Case("not finite, 500 nodes", "diff", lambda: Chain(330, 200, _root), (4, 8), infinite_at_zero),
)
