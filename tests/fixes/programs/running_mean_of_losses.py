# ideal: converted-after
"""A running mean of losses, as training loops keep it: numbers alone, behind the graph."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def update(self, value, n):
        self.total += value * n
        self.count += n

    @property
    def avg(self):
        return self.total / max(1, self.count)


meter = Meter()


def step(model, x, y):
    out = model(x)
    loss = nn.functional.mse_loss(out, y)
    meter.update(loss.item(), x.shape[0])
    return loss * 2


torch.manual_seed(0)
net = nn.Linear(6, 3)
fast = torch.compile(step, backend="eager")
for _ in range(4):
    fast(net, torch.randn(5, 6), torch.randn(5, 3)).backward()
print(round(meter.avg, 4), meter.count)
