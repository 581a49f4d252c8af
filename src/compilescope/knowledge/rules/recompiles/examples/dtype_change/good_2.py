#: changes: the first call computes in float64 too
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self):
        return self.weight * 2

net = Net().double()
compiled = torch.compile(net, backend="eager")
compiled()
compiled()
