"""Backends with a planted bug, and models to plant it in."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx import GraphModule, Node

Change = Callable[[GraphModule, Node], None]


class Planted:
    """A Dynamo backend that runs the graph eagerly, with one operation changed.

    It goes by the node's name, so that it does the same to a part of the graph. Which node that is
    it decides when it first sees a graph: the one in the middle of those that `pick` likes.
    """

    def __init__(self, pick: Callable[[Node], bool], change: Change, *, all_of_them: bool = False):
        self.pick, self.change, self.all = pick, change, all_of_them
        self.calls = 0
        self.names: list[str] | None = None

    def __call__(self, gm: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.calls += 1
        calls = [node for node in gm.graph.nodes if node.op.startswith("call_")]
        liked = [node for node in calls if self.pick(node)]
        if self.names is None and liked:
            names = [node.name for node in liked]
            self.names = names if self.all else [names[len(names) // 2]]
        for node in liked:
            if node.name in (self.names or ()):
                self.change(gm, node)
        gm.recompile()
        return gm


def called(node: Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def named(*names: str) -> Callable[[Node], bool]:
    return lambda node: called(node) in names


def instead(function: Callable[..., Any]) -> Change:
    """Another function in its place, of the same arguments."""

    def change(gm: GraphModule, node: Node) -> None:
        node.op, node.target = "call_function", function

    return change


class Block(nn.Module):
    """About 20 operations, among them one of each that can be spoilt."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.up = nn.Linear(size, 2 * size)
        self.down = nn.Linear(2 * size, size)
        self.register_buffer("seen", torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = (torch.matmul(q, k.transpose(-1, -2)) / 3.0).masked_fill(future, -1e9)
        x = x + torch.matmul(torch.softmax(weights, dim=-1), v)
        inner = F.gelu(self.up(x))
        x = torch.sub(x, self.down(inner))
        self.seen.add_(x.detach().mean((0, 1)))
        x = x - 0.1 * self.seen
        rest = torch.cat([x[..., 2:], x[..., :2]], dim=-1)
        return x + torch.round(rest * 64) / 64 + torch.tanh(x)


class Stack(nn.Module):
    def __init__(self, depth: int = 1) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            # A block about doubles its input: unchecked, fifty of them leave no room for an error.
            x = block(x) * 0.5
        return x


def half_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a.half(), b.half()).to(a.dtype)


def drop_bias(gm: GraphModule, node: Node) -> None:
    node.args = (node.args[0], node.args[1], None)


def swap(gm: GraphModule, node: Node) -> None:
    node.args = (node.args[1], node.args[0])


def shift_slice(gm: GraphModule, node: Node) -> None:
    node.args = (node.args[0], (Ellipsis, slice(1, -1)))


def is_slice(node: Node) -> bool:
    return node.target is operator.getitem and node.args[1] == (Ellipsis, slice(2, None, None))


def round_down(x: torch.Tensor) -> torch.Tensor:
    return torch.floor(x)


def other_eps(gm: GraphModule, node: Node) -> None:
    node.args = (*node.args[:4], 1e-2)


def other_mask(x: torch.Tensor, mask: torch.Tensor, value: float) -> torch.Tensor:
    return x.masked_fill(mask.roll(1, 0), value)


def other_dim(gm: GraphModule, node: Node) -> None:
    node.kwargs = {"dim": -2}


def forget_write(gm: GraphModule, node: Node) -> None:
    node.target = "add"


BUGS: dict[str, tuple[Callable[[Node], bool], Change, str]] = {
    "gelu by tanh": (
        named("gelu"), lambda gm, n: setattr(n, "kwargs", {"approximate": "tanh"}), "gelu"
    ),
    "wrong eps": (named("layer_norm"), other_eps, "layer_norm"),
    "dropped bias": (named("linear"), drop_bias, "linear"),
    "half accumulation": (named("matmul"), instead(half_matmul), "matmul"),
    "swapped operands": (named("sub"), swap, "sub"),
    "off-by-one slice": (is_slice, shift_slice, "getitem"),
    "stale buffer": (named("add_"), forget_write, "add_"),
    "wrong mask": (named("masked_fill"), instead(other_mask), "masked_fill"),
    "wrong dim": (named("softmax"), other_dim, "softmax"),
    "bad rounding": (named("round"), instead(round_down), "round"),
}  # fmt: skip
"""What is picked, how it is spoilt, and what the guilty operation's target ends in."""


def planted(bug: str, **more: Any) -> Planted:
    pick, change, _ = BUGS[bug]
    return Planted(pick, change, **more)
