# ideal: none
# sound: value-read-first
"""A tensor is equal to itself though it holds NaN; its elements are not."""

import torch
from torch import nn


class Refine(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, last):
        y = torch.tanh(self.lin(x))
        if torch.equal(x, last):
            y = y.nan_to_num() * 2
        return y.nan_to_num().sum(-1)


torch.manual_seed(0)
model = torch.compile(Refine(), backend="eager")
for n in range(4):
    x = torch.randn(2, 4)
    x[0, 0] = float("nan")
    print(model(x, x if n % 2 else x + 1).sum().item())
