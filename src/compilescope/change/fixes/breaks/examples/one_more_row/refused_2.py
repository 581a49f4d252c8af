#: because: a layer with `nn.BatchNorm1d\(2, track_running_stats=False\)` may see several rows
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2, track_running_stats=False)

    def forward(self, x, longer):
        idx = torch.where(longer)[0]
        if len(idx) > 0:
            x[idx] = self.norm(x[idx])
        return x + 1


net = torch.compile(Net().eval(), backend="eager")
with torch.no_grad():
    net(torch.ones(4, 2), torch.tensor([True, False, True, False]))
