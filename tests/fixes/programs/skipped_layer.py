# ideal: cond-for-return
# A layer that is skipped where the input is quiet.
import torch
from torch import nn


class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        nn.init.constant_(self.layer.weight, 0.1)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x):
        if x.abs().max() < 0.1:
            return x * 1
        h = self.layer(x)
        h = h.relu()
        return h + x


fast = torch.compile(Skip(), backend="eager")
with torch.no_grad():
    for level in (0.01, 1.0):
        print(fast(torch.full((2, 4), level)).sum().item())
