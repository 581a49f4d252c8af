# ideal: join-outside
import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, past):
        seen = torch.stack(past)
        return self.lin(x) + seen.mean(0)


torch.manual_seed(0)
mixer = torch.compile(Mixer(), backend="eager")
past = [torch.zeros(2, 4)]
x = torch.randn(2, 4)
for step in range(6):
    with torch.no_grad():
        x = mixer(x, past)
    past.append(x)
    print(step, f"{x.sum().item():.4f}")
