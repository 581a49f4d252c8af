# ideal: none
# sound: capture-shapes
# trap: the picked rows are weighed against each other, so one more row changes all of them
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(6, 1)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x, hard):
        idx = torch.where(hard)[0]
        if len(idx) > 0:
            rows = self.norm(x[idx])
            x[idx] = rows * self.score(rows).softmax(0)
        return x * 2


torch.manual_seed(0)
net = torch.compile(Pool().eval(), backend="eager")
with torch.no_grad():
    for hard in ([1, 0, 1, 0], [0, 0, 0, 1]):
        print(round(net(torch.randn(4, 6), torch.tensor(hard).bool()).sum().item(), 4))
