# ideal: async-assert
"""Every layer is checked for NaN, in another way each: an earlier check always raises first."""

import torch
from torch import nn


def check(x, name):
    if torch.isnan(x).any():
        raise ValueError(f"NaN in {name}")


class Block(nn.Module):
    def __init__(self, width, name):
        super().__init__()
        self.name = name
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.first(x)
        if not torch.isfinite(h).all():
            raise FloatingPointError("not finite in " + self.name)
        h = self.second(h.relu())
        check(h, self.name)
        return x + h


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, f"block {i}") for i in range(2))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        assert not torch.isnan(x).any(), "NaN in the input"
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(0)
net = torch.compile(Net(), backend="aot_eager")
for step in range(3):
    print(step, net(torch.randn(4, 8)).sum().item())
