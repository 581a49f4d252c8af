#: because: may set it to a size
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 2

    def forward(self, x):
        if x.shape[0] > self.longest:
            self.longest = x.shape[0]
        return x * self.longest


net = torch.compile(Net(), backend="eager")
for size in (3, 5, 4, 7):
    net(torch.ones(size))
