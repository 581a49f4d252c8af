# ideal: none
# sound: capture-shapes value-read-first
# trap: in evaluation too, the rows are normalised by their own mean
import torch
import torch.nn.functional as F
from torch import nn


class Whitened(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(6, 6)

    def forward(self, x, hard):
        if hard.any():
            x[hard] = F.batch_norm(self.proj(x[hard]), None, None, training=True)
        return x * 2


torch.manual_seed(0)
net = torch.compile(Whitened().eval(), backend="eager")
with torch.no_grad():
    for hard in ([1, 0, 1, 0], [0, 1, 0, 1]):
        print(round(net(torch.randn(4, 6), torch.tensor(hard).bool()).sum().item(), 4))
