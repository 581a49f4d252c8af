import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        return x * self.step

net = Net()

@torch.compile(backend="eager")
def f(x):
    return net(x)

for _ in range(4):
    print(f(torch.ones(3)))
    net.step += 1
