#: because: `self.seen\[-1\]` does more with the list|`self.seen\[-1\]` may
import torch


class Monitor:
    def __init__(self, seen):
        self.seen = seen

    def newest(self):
        return self.seen[-1].mean().item()


class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ks = []
        self.monitor = Monitor(self.ks)

    def forward(self, x):
        self.ks.append(x.sin())
        return x + torch.cat(self.ks).mean()


cell = Cell()
net = torch.compile(cell, backend="eager")
for _ in range(5):
    net(torch.ones(2, 4))
print(cell.monitor.newest())
