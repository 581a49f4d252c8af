#: because: `x\[idx\].amax\(0\)` may see several rows
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, longer):
        idx = torch.where(longer)[0]
        if len(idx) > 0:
            x[idx] = x[idx] - x[idx].amax(0)
        return x + 1


net = torch.compile(Net().eval(), backend="eager")
with torch.no_grad():
    net(torch.ones(4, 2), torch.tensor([True, False, True, False]))
