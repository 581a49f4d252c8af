# ideal: where-for-if
"""Whether any layer overflowed, gathered over the layers."""

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        overflow = False
        for layer in self.layers:
            x = layer(x).relu()
            overflow = overflow or (x.abs().max() > 10)
        if overflow:
            x = x / x.abs().max()
        return x


torch.manual_seed(0)
deep = Deep()
run = torch.compile(deep, backend="eager")
with torch.no_grad():
    for k in (0.1, 20.0, 100.0):
        print(run(torch.full((2, 4), k)).sum())
