# ideal: print-after-graph
"""Debug lines that show sizes: Dynamo keeps tensors, numbers and text for later, and no tuples."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.proj = nn.Linear(6, 6)

    def forward(self, x):
        h = self.proj(x).relu()
        print("block:", x.shape, "->", tuple(h.size()), h.dtype)
        return h * 2


net = torch.compile(Block(), backend="eager")
for rows in (4, 5, 6, 7):
    print(round(net(torch.ones(rows, 6)).sum().item(), 4))
