"""A backend that takes an approximation for the function. Status 1 where the numbers are wrong."""

import os
import sys

import torch
from torch import nn
from torch.nn import functional as F


def quick_gelu(graph, inputs):
    for node in graph.graph.nodes:
        if node.target is F.gelu:
            node.kwargs = {"approximate": "tanh"}
    graph.recompile()
    return graph.forward


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 64)
        self.down = nn.Linear(64, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        hidden = self.up(x)
        hidden = F.gelu(hidden)
        return self.norm(x + self.down(hidden))


def build():
    torch.manual_seed(0)
    return Block().eval(), (torch.randn(8, 32),)


def main():
    model, args = build()
    backend = os.environ.get("TORCH_COMPILE_BACKEND", quick_gelu)
    with torch.no_grad():
        right = model(*args)
        out = torch.compile(model, backend=backend)(*args)
    if not torch.allclose(out, right, rtol=1e-5, atol=1e-6):
        print("other numbers")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
