# ideal: where-for-if
"""A test that is named: a tensor's truth, or a flag of the module."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask):
        h = self.lin(x)
        needs_mask = mask.any() or self.training
        if needs_mask:
            h = h.masked_fill(mask.unsqueeze(-1), 0.0)
        return torch.relu(h)


torch.manual_seed(0)
block = Block().eval()
run = torch.compile(block, backend="eager")
for masked in (0, 2):
    mask = torch.arange(3) >= 3 - masked
    print(run(torch.ones(3, 4), mask).sum().item())
