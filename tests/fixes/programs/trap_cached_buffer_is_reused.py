# ideal: none
# trap: the list holds the buffer that the caller writes into, a joined tensor a copy
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.xs = []

    def forward(self, x):
        self.xs.append(x)
        k = self.lin(torch.cat(self.xs, dim=1))
        return x + torch.softmax(x @ k.transpose(1, 2), -1) @ k


torch.manual_seed(0)
cell = Cell()
step = torch.compile(cell, backend="eager")
with torch.no_grad():
    for _ in range(2):
        cell.xs = []
        x = torch.randn(2, 1, 8)
        for _ in range(6):
            x.copy_(torch.tanh(step(x)))
        print(f"{x.sum().item():.4f}")
