# ideal: unspecialised-ints
import torch
from torch import nn


class Warmup(nn.Module):
    """Scales what it gets by how often it was called."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.calls = 2

    def forward(self, x):
        self.calls += 1
        return self.linear(x) / self.calls


torch.manual_seed(0)
model = Warmup(4)
model.compile(backend="eager")
for _ in range(5):
    out = model(torch.ones(2, 4))
    print(model.calls, f"{out.sum().item():.5f}")
