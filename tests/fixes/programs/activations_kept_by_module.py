# ideal: append-outside
"""A module that remembers the mean of what came out, call by call."""

import torch


class Watched(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Linear(3, 3)
        self.means = []

    def forward(self, x):
        y = self.inner(x).relu()
        self.means.append(y.detach().mean())
        return y * 2


net = torch.compile(Watched(), backend="eager")
total = sum(net(torch.full((2, 3), float(n))).sum() for n in range(4))
total.backward()
print(round(total.item(), 4), len(net.means), [round(m.item(), 4) for m in net.means])
