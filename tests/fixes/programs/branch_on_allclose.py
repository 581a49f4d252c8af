# ideal: where-for-if
"""Branches on `torch.allclose` and `torch.equal`, which give a Python bool."""

import torch
from torch import nn


class Refine(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, ids, pad):
        y = torch.tanh(self.lin(x))
        if torch.allclose(x, y, atol=0.5):
            y = y * 2
        if not torch.equal(ids, pad):
            y = y + 1
        return y.sum(-1)


torch.manual_seed(0)
model = torch.compile(Refine(), backend="eager")
for n in range(4):
    x = torch.randn(2, 4) * (0.1 if n % 2 else 3)
    print(model(x, torch.tensor([1, 2]), torch.tensor([1, 2 + n % 2])).sum().item())
