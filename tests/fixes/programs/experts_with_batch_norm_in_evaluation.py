# ideal: one-more-row
# Experts with batch normalisation and dropout; those without tokens are skipped.
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up = nn.Linear(d, 2 * d)
        self.norm = nn.BatchNorm1d(2 * d)
        self.drop = nn.Dropout(0.1)
        self.down = nn.Linear(2 * d, d)

    def forward(self, x):
        return self.down(self.drop(torch.relu(self.norm(self.up(x)))))


class Experts(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([Expert(d) for _ in range(n)])

    def forward(self, x):
        chosen = self.router(x).argmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = chosen == i
            if mask.any():
                out[mask] = expert(x[mask])
        return out


torch.manual_seed(0)
net = torch.compile(Experts(8, 3).eval(), backend="eager")
with torch.no_grad():
    for _ in range(2):
        print(round(net(torch.randn(6, 8)).sum().item(), 4))
