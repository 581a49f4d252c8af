# ideal: none
# trap: another object keeps the same list, and counts what is in it
import torch
from torch import nn


class Stats:
    def __init__(self, seen):
        self.seen = seen

    def count(self):
        return len(self.seen)


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.ks = []
        self.stats = Stats(self.ks)

    def forward(self, x):
        k = self.lin(x)
        self.ks.append(k)
        k = torch.cat(self.ks, dim=1)
        return x + torch.softmax(x @ k.transpose(1, 2), -1) @ k


torch.manual_seed(0)
cell = Cell()
step = torch.compile(cell, backend="eager")
with torch.no_grad():
    for _ in range(2):
        cell.ks.clear()
        x = torch.randn(2, 1, 8)
        for _ in range(6):
            x = torch.tanh(step(x))
        print(f"{x.sum().item():.4f}", cell.stats.count())
