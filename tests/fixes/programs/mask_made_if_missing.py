# ideal: none
# sound: default-outside
"""A mask that the function makes itself where none is given."""

import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[0], 1)
        y = self.lin(x).relu() * mask
        return y.sum(0) / mask.sum()


torch.manual_seed(0)
pool = torch.compile(Pool(), backend="eager")
for mask in (None, torch.tensor([[1.0], [0.0]]), None, torch.tensor([[0.0], [1.0]])):
    print(f"{pool(torch.ones(2, 4), mask).sum().item():.4f}")
