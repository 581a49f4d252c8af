"""A small gated block, compiled. One graph break and a counter that recompiles, on purpose."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)
        self.step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.gelu(self.up(x))
        if hidden.abs().max() > 3:
            hidden = hidden.clamp(-3, 3)
        x = self.norm(x + self.down(hidden))
        return x * (1 + 0.01 * self.step)


def build():
    return Block().eval(), (torch.randn(8, 32),)


def fast_gelu(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]):
    """A backend with a planted bug: it swaps gelu for its tanh approximation."""
    for node in graph.graph.nodes:
        if node.target is F.gelu:
            node.kwargs = {"approximate": "tanh"}
    graph.recompile()
    return graph.forward


def main() -> None:
    torch.manual_seed(0)
    block = Block().eval()
    compiled = torch.compile(block, backend="aot_eager")
    with torch.no_grad():
        for step in range(3):
            block.step = step
            result = compiled(torch.randn(8, 32))
    print(f"done: {tuple(result.shape)}")


if __name__ == "__main__":
    main()
