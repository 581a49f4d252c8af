# ideal: isolated-recompiles
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.lin = nn.Linear(a, b)

    def forward(self, x):
        return self.lin(x).relu()


torch.manual_seed(0)
widths = [4, 6, 8, 10, 12]
blocks = [Block(a, b) for a, b in zip(widths, widths[1:])]
for block in blocks:
    block.compile(backend="eager")
x = torch.ones(2, 4)
for block in blocks:
    x = block(x)
print(x.sum().item())
