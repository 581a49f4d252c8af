# ideal: value-read-first
# How often the long table was taken is counted: where both are at hand, nobody would know.
import torch
from torch import nn


class Frequencies(nn.Module):
    def __init__(self):
        super().__init__()
        self.short, self.long = torch.ones(3), torch.full((3,), 2.0)
        self.freq, self.switches = self.short, []

    def forward(self, x):
        if x.max() > 1:
            self.switches.append("long")
            self.freq = self.long
        else:
            self.freq = self.short
        return x * self.freq


layer = Frequencies()
fast = torch.compile(layer, backend="eager")
for top in (0.5, 3.0):
    print(fast(torch.full((3,), top)).tolist(), layer.switches)
