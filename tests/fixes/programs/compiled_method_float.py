# ideal: none
# sound: dynamic-true
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.step = torch.compile(self._step, backend="eager")

    def _step(self, x, scale):
        return self.lin(x) * scale

    def forward(self, x, scale):
        return self.step(x, scale)


torch.manual_seed(0)
model = Net()
for n in range(4):
    print(model(torch.ones(2, 4), 0.5 + n).sum().item())
