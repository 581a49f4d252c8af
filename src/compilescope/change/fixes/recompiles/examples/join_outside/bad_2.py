import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.past = [torch.zeros(2, 4)]

    def forward(self, x):
        y = self.layer(x)
        return y + torch.cat(self.past).mean(0) * len(self.past) - self.past[-1]


net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(4):
    compiled(torch.ones(2, 4))
    net.past.append(torch.ones(2, 4))
