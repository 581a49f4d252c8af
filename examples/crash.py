"""A program that ends because its backend cannot compile a graph. Run it under compilescope:

compilescope run examples/crash.py

The backend stands in for an accelerator's: it lowers some operations and raises for the others.
"""

import operator
from collections.abc import Callable

import torch
from torch import nn
from torch._dynamo import register_backend
from torch._dynamo.backends.common import aot_autograd

aten = torch.ops.aten
LOWERED = {
    aten.add.Tensor,
    aten.addmm.default,
    aten.mul.Tensor,
    aten.relu.default,
    aten.select.int,
    aten.sigmoid.default,
    aten.t.default,
    aten.unsqueeze.default,
    operator.getitem,
}


def lower(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target not in LOWERED:
            raise NotImplementedError(f"toy_npu has no lowering for {node.target}")
    return graph.forward


@register_backend
def toy_npu(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
    return aot_autograd(fw_compiler=lower)(graph, inputs)


class Ranker(nn.Module):
    """Scores items, and keeps the best."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, 32)
        self.score = nn.Linear(32, 1)

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        scores = torch.sigmoid(self.score(torch.relu(self.hidden(items))))[:, 0]
        best, order = torch.topk(scores, k=4)
        return items[order] * best.unsqueeze(1)


def main() -> None:
    torch.manual_seed(0)
    model = torch.compile(Ranker().eval(), backend="toy_npu")
    with torch.no_grad():
        print(model(torch.randn(64, 16)).shape)


if __name__ == "__main__":
    main()
