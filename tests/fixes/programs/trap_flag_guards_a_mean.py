# ideal: none
# sound: capture-scalars capture-shapes value-read-first
# trap: the mean of no rows is NaN, so the work under the flag cannot run on none
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def add_picked(self, x, picked, any_picked):
        if any_picked:
            x = x + x[picked].mean(0)
        return x

    def forward(self, x, picked):
        any_picked = picked.any().item()
        x = self.add_picked(x, picked, any_picked)
        return self.add_picked(self.proj(x), picked, any_picked)


torch.manual_seed(0)
model = torch.compile(Pool().eval(), backend="eager")
with torch.no_grad():
    for picked in ([1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]):
        print(f"{model(torch.randn(4, 8), torch.tensor(picked).bool()).sum().item():.4f}")
