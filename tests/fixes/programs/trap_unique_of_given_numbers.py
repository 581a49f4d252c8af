# ideal: none
# trap: the numbers come from the caller; -1 means the last table, which a range never reaches
import torch
from torch import nn


class Tables(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.tables = nn.ModuleList([nn.Linear(d, d) for _ in range(n)])

    def forward(self, x, kinds):
        out = torch.zeros_like(x)
        for k in torch.unique(kinds):
            mask = kinds == k
            out[mask] = self.tables[k](x[mask])
        return out


torch.manual_seed(0)
step = torch.compile(Tables(4, 3).eval(), backend="eager")
with torch.no_grad():
    for kinds in ([0, 1, 1, 2], [0, 0, 2, 2], [-1, 0, 1, -1]):
        print(round(step(torch.ones(4, 4), torch.tensor(kinds)).sum().item(), 4))
