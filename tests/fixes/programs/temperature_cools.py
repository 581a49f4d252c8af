# ideal: none
# sound: dynamic-true
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.temperature = 1.0

    def forward(self, x):
        return (self.lin(x) / self.temperature).softmax(-1)


torch.manual_seed(0)
model = Net()
compiled = torch.compile(model, backend="eager")
for n in range(5):
    model.temperature *= 0.9
    print(compiled(torch.ones(2, 4)).max().item())
