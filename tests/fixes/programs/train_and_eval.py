# ideal: any
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x)).relu()


torch.manual_seed(0)
model = Net()
model.compile(backend="eager")
for epoch in range(3):
    model.train()
    loss = model(torch.randn(6, 4)).sum()
    loss.backward()
    model.eval()
    with torch.no_grad():
        print(epoch, f"{model(torch.ones(6, 4)).sum().item():.4f}")
