#: because: `len\(self.ks\)` does more with the list than join it
import torch


class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ks = []

    def forward(self, x):
        self.ks.append(x.sin())
        return x + torch.cat(self.ks).sum(0) / len(self.ks)


net = torch.compile(Cell(), backend="eager")
for _ in range(5):
    net(torch.ones(2, 4))
