# ideal: where-for-if
# A running mean that leaves bad batches out; the buffer is changed in place.
import torch
import torch.nn as nn


class RunningMean(nn.Module):
    def __init__(self, size, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training and torch.isfinite(x).all():
            self.mean.mul_(1 - self.momentum).add_(x.detach().mean(0), alpha=self.momentum)
            self.batches += 1
        return torch.nan_to_num(x) - self.mean


layer = RunningMean(3)
kept = layer.mean
fast = torch.compile(layer, backend="eager")
for batch in (torch.ones(2, 3), torch.full((2, 3), float("nan")), torch.full((2, 3), 5.0)):
    fast(batch)
    print(layer.mean.tolist(), int(layer.batches), kept is layer.mean)
layer.eval()
print(fast(torch.zeros(2, 3)).tolist())
