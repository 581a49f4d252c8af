# ideal: none
# trap: the last mask is returned: that of the last expert which was chosen, not of the last one
# sound: capture-shapes capture-scalars-and-shapes mark-dynamic
import torch
from torch import nn
import torch.nn.functional as F


class Mlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up = nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([Mlp(d) for _ in range(n)])

    def forward(self, x):
        chosen = self.router(x).argmax(dim=-1)
        out = torch.zeros_like(x)
        for e in torch.unique(chosen):
            mask = chosen == e
            out[mask] = self.experts[e.item()](x[mask])
        return out, mask


torch.manual_seed(0)
net = Experts(8, 4).eval()
step = torch.compile(net, backend="eager")
with torch.no_grad():
    for n in range(3):
        print(round(step(torch.randn(6 + n, 8))[1].sum().item(), 4))
