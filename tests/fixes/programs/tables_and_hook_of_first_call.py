# ideal: compile-second-call
"""The first call makes tables and installs a hook; other calls do neither."""

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.longest = 0
        self.cos = None

    def forward(self, x):
        if x.shape[1] > self.longest:
            self.longest = x.shape[1]
            rates = 1.0 / 100 ** (torch.arange(0, self.dim, 2) / self.dim)
            angles = torch.outer(torch.arange(x.shape[1]).float(), rates)
            self.cos = torch.cat([angles, angles], dim=-1).cos()
        return x * self.cos[: x.shape[1]]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary, self.lin = Rotary(4), nn.Linear(4, 4)
        self.hooked = False

    def halve(self, module, args, output):
        return output * 0.5

    def forward(self, x):
        if not self.hooked:
            self.lin.register_forward_hook(self.halve)
            self.hooked = True
        return self.lin(self.rotary(x))


torch.manual_seed(0)
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    for k in range(4):
        print(f"{net(torch.full((2, 3, 4), float(k))).sum().item():.5f}")
