import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.tensor(0.5, dtype=torch.float64)

    def forward(self, x):
        return x * self.scale

net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(3):
    print(compiled(torch.ones(3)))
    net.scale += 0.5
