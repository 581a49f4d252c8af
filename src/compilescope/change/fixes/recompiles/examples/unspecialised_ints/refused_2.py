#: because: needs the number itself
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = 1

    def forward(self, x):
        for _ in range(self.depth):
            x = x * 2
        return x


net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(3):
    compiled(torch.ones(3))
    net.depth += 1
