# ideal: none
# trap: one of the layers is replaced by another, which draws random numbers
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(3):
            self.layers.append(nn.Linear(4, 4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.abs().mean() < 0.4:
                break
        return x + torch.rand_like(x)


torch.manual_seed(0)
model = Net().train()
model.layers[2] = nn.Dropout(0.5)
net = torch.compile(model, backend="eager")
with torch.no_grad():
    for scale in (0.1, 1.0, 5.0):
        print(f"{net(torch.ones(2, 4) * scale).sum().item():.4f}")
