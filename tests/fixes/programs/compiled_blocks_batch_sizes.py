# ideal: mark-dynamic
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        return x + self.lin(x).relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(4) for _ in range(3))

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


torch.manual_seed(0)
model = Net().eval()
for b in model.blocks:
    b.compile(backend="eager")
with torch.no_grad():
    for n in (3, 5, 7):
        print(model(torch.ones(n, 4)).sum().item())
