# ideal: none
# trap: each mode needs its graph; neither may be switched off
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        return y * 0.5 if self.training else y.round(decimals=2)


torch.manual_seed(0)
model = Net()
model.forward = torch.compile(model.forward, backend="eager")
for epoch in range(4):
    model.train(epoch % 2 == 0)
    print(epoch, f"{model(torch.ones(2, 4)).sum().item():.4f}")
