# ideal: print-after-graph
"""A print left over from debugging, in the middle of a model."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.outer = nn.Linear(4, 1)

    def forward(self, x):
        h = torch.relu(self.inner(x))
        print("hidden", h.shape, h.abs().max())
        return self.outer(h)


torch.manual_seed(0)
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    for _ in range(2):
        print(round(net(torch.ones(2, 4)).sum().item(), 4))
