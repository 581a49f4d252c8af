# ideal: while-loop
# Halves a layer's output until its peak, a number that each turn reads again, is small enough.
import torch
from torch import nn


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        v = h.abs().max().item()
        while v > 1:
            h = h / 2
            v = h.abs().max().item()
        return h.tanh()


torch.manual_seed(0)
fit = torch.compile(Fit(), backend="eager")
with torch.no_grad():
    for top in (0.1, 3.0, 40.0):
        print(fit(torch.randn(2, 4) * top))
