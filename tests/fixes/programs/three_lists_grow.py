# ideal: append-outside
"""Growing lists: of the module, of a helper object, and of the caller."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.values = []

    def update(self, v):
        self.values.append(v)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(4, 4)
        self.history = []
        self.meter = Meter()

    def forward(self, x, collected):
        h = self.lin(x)
        self.history.append(h.detach().mean())
        self.meter.update(h.detach().std())
        collected.append(h.detach())
        return h.relu()


net = torch.compile(Net(), backend="eager")
collected = []
for n in range(5):
    out = net(torch.full((2, 4), float(n)), collected)
print(len(net.history), len(net.meter.values), len(collected), torch.cat(collected).sum().item())
