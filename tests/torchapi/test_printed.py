"""Our printer of graphs writes what torch's does, letter by letter, or leaves it to torch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from compilescope.instrument.torchapi.graphs.graph_printer import _ENOUGH, GraphPrinter, printed

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def graphs(function: Callable[..., Any], *args: Any, **options: Any) -> list[GraphModule]:
    seen: list[GraphModule] = []

    def keep(module: GraphModule, _: Any) -> Any:
        seen.append(module)
        return module.forward

    torch.compile(function, backend=keep, **options)(*args)
    return seen


def torchs(module: GraphModule) -> str:
    return module.print_readable(print_output=False, include_stride=True, include_device=True)


def calls(x: Tensor, y: Tensor) -> Any:
    x = x.view(-1)[1:3]
    x += 1
    z = torch.cat([x, y.to(torch.float64, copy=True)], dim=0)
    made = torch.zeros(3, device=torch.device("cpu"), dtype=torch.int8, layout=torch.strided)
    return z, made, nn.functional.linear(x, x.new_ones(2, 2)), -(x**2), x[..., None], x @ y


def several(x: Tensor) -> Any:
    x.add_(1)  # Nobody uses what it gives.
    return x.split(1)[0], x.topk(1), torch.stack(x.unbind()), x.contiguous()


def modes(x: Tensor) -> Tensor:
    with torch.no_grad(), torch.autocast("cpu"):
        return (x @ x).to(memory_format=torch.contiguous_format) * float("inf") + 1e-7


def broken(x: Tensor) -> Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def convolutions(x: Tensor) -> Tensor:
    x = nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), training=True)
    return nn.functional.max_pool2d(x, 2).flatten(1).sum(dim=(0, 1))


@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (calls, (torch.ones(2, 2), torch.ones(2)), {}),
        (calls, (torch.ones(2, 2), torch.ones(2)), {"dynamic": True}),
        (several, (torch.ones(2, 2),), {}),
        (modes, (torch.ones(2, 2),), {}),
        (broken, (torch.ones(2),), {}),
        (convolutions, (torch.ones(2, 3, 4, 4),), {}),
        (lambda x, n: x * n + x.size(0), (torch.ones(2, 2), 3), {"dynamic": True}),
        (nn.TransformerEncoderLayer(8, 2), (torch.ones(2, 3, 8),), {}),
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)), (torch.ones(2, 2),), {}),
    ],
)
def test_it_prints_as_torch_does(function: Any, args: Any, options: Any) -> None:
    seen = graphs(function, *args, **options)
    assert seen
    for module in seen:
        assert printed(module) == torchs(module)


def _inner(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def test_what_it_does_not_know_is_left_to_torch() -> None:
    (module,) = graphs(_inner, torch.ones(2))
    assert printed(module) is None
    (module,) = graphs(lambda x: x + 1, torch.ones(2))
    add = next(node for node in module.graph.nodes if node.target is operator.add)
    add.meta["custom"] = {"stage": "one"}
    assert printed(module) is None
    del add.meta["custom"]
    assert printed(module) is not None
    add.target = _inner
    assert printed(module) is None


def test_it_is_believed_once_it_has_agreed_with_torch() -> None:
    (module,) = graphs(lambda x: x + 1, torch.ones(2))
    asked = 0

    def ask() -> str:
        nonlocal asked
        asked += 1
        return torchs(module)

    printer = GraphPrinter()
    texts = {printer.text(module, ask) for _ in range(_ENOUGH + 3)}
    assert texts == {torchs(module)} and asked == _ENOUGH
    # No graph, or one that it does not know: torch's word.
    assert printer.text(None, ask) in texts and asked == _ENOUGH + 1
    (other,) = graphs(_inner, torch.ones(2))
    assert printer.text(other, lambda: torchs(other)) == torchs(other)


def test_a_torch_that_prints_otherwise_is_asked_for_ever() -> None:
    (module,) = graphs(lambda x: x + 1, torch.ones(2))
    printer = GraphPrinter()
    for number in range(_ENOUGH):
        other = f"# Drawn anew.\n{torchs(module)}"
        assert printer.text(module, lambda other=other: other) == other, number
    for _ in range(3):
        assert printer.text(module, lambda: "another") == "another"
