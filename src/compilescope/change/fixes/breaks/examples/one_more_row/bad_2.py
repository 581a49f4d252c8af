#: note: A mask of two dimensions picks tokens.
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def forward(self, x, valid):
        out = torch.zeros_like(x)
        if valid.any():
            out[valid] = self.drop(x[valid]) + 1
        return out


net = torch.compile(Net().eval(), backend="eager")
with torch.no_grad():
    net(torch.ones(2, 3, 2), torch.tensor([[True, False, True], [False, False, True]]))
