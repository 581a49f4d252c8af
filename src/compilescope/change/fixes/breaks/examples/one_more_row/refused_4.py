#: because: the program hooks code into layers
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x, longer):
        idx = torch.where(longer)[0]
        if len(idx) > 0:
            x[idx] = self.norm(x[idx])
        return x + 1


net = Net().eval()
net.norm.register_forward_hook(lambda module, given, result: result * len(result))
net = torch.compile(net, backend="eager")
with torch.no_grad():
    net(torch.ones(4, 2), torch.tensor([True, False, True, False]))
