#: because: options from a dict
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    @torch.compile(**{"backend": "eager"})
    def forward(self, x):
        return x * self.step


net = Net()
for _ in range(4):
    net(torch.ones(3))
    net.step += 1
