# ideal: mark-dynamic
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(x).relu()


torch.manual_seed(0)
model = Net()
model.forward = torch.compile(model.forward, backend="eager")
for n in (3, 5, 7):
    print(model(torch.ones(n, 4)).sum().item())
