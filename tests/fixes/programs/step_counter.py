# ideal: unspecialised-ints
import torch
from torch import nn


class Warmup(nn.Module):
    """Scales what it gets by the epoch that the training is in."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.epoch = 2

    def forward(self, x):
        return self.linear(x) / self.epoch


torch.manual_seed(0)
model = Warmup(4)
model.compile(backend="eager")
for _ in range(5):
    model.epoch += 1
    out = model(torch.ones(2, 4))
    print(model.epoch, f"{out.sum().item():.5f}")
