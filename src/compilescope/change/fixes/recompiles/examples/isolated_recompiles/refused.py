#: because: applied once
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.double = True

    def forward(self, x):
        return x * 2 if self.double else x


net = Net()
compiled = torch.compile(net, backend="eager")
compiled(torch.ones(3))
net.double = False
compiled(torch.ones(3))
