# ideal: none
# trap: the layer's mean over no rows is undefined, and its batch statistics would move
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)) for _ in range(3)]
        )

    def forward(self, x, idx):
        out = torch.zeros_like(x)
        for i in range(3):
            mask = idx == i
            if mask.any():
                out[mask] = self.experts[i](x[mask])
        return out


torch.manual_seed(0)
net = torch.compile(Experts(), backend="eager")
x = torch.randn(12, 8)
print(net(x, torch.arange(12) % 3).sum().item())
