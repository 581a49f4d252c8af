# ideal: outside-of-compiled
"""A layer that makes its weight when it first sees an input."""

import torch
from torch import nn


class LazyScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scales the last dimension."""
        if self.scale is None:
            self.scale = nn.Parameter(torch.full((x.shape[-1],), 1.5))

        y = torch.tanh(x) * self.scale
        return y + x


layer = torch.compile(LazyScale(), backend="aot_eager")
x = torch.linspace(-1, 1, 6).reshape(2, 3)
for _ in range(2):
    print(layer(x).sum().item())
