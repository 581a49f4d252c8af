import torch

class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        return x * self.step

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ModuleList([Inner()])

    def forward(self, x):
        return self.inner[0](x)

net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(4):
    compiled(torch.ones(3))
    net.inner[0].step += 1
