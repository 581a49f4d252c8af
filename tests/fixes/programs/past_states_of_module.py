# ideal: join-outside
import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.past = []

    def forward(self, x):
        y = self.lin(x)
        seen = torch.stack(self.past, dim=1)
        return y + seen.mean(1) * len(self.past) + self.past[-1]


torch.manual_seed(0)
net = Mixer()
net.past.append(torch.zeros(2, 4))
mixer = torch.compile(net, backend="eager")
x = torch.randn(2, 4)
for step in range(6):
    with torch.no_grad():
        x = mixer(x)
    net.past.append(x.clone())
    print(step, f"{x.sum().item():.4f}")
