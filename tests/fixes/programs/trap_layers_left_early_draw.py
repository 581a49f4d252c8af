# ideal: none
# trap: layers after the break draw random numbers in training, which later draws would miss
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)) for _ in range(3)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.abs().mean() < 0.2:
                break
        return x + torch.rand_like(x)


torch.manual_seed(0)
net = torch.compile(Net().train(), backend="eager")
with torch.no_grad():
    for scale in (0.1, 1.0, 5.0):
        print(f"{net(torch.ones(2, 4) * scale).sum().item():.4f}")
