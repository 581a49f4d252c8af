import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self):
        return self.weight * 2

net = Net()
compiled = torch.compile(net, backend="eager")
net.weight.requires_grad_(False)
print(compiled().tolist())
print(compiled().tolist())
