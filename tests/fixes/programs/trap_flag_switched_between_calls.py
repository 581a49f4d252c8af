# ideal: none
# trap: each value of the flag is another computation, and needs its graph
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.doubled = False

    def forward(self, x):
        y = self.lin(x)
        return y * 2 if self.doubled else y


torch.manual_seed(0)
net = Net()
model = torch.compile(net, backend="eager")
for step in range(4):
    net.doubled = step % 2 == 1
    print(f"{model(torch.ones(2, 4)).sum().item():.4f}")
