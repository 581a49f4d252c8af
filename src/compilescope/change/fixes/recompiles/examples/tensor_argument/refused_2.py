#: because: `if weight > 0.5` needs a number|control flow depends
import torch


@torch.compile(backend="eager", dynamic=False)
def decay(x, rate):
    weight = 1 - rate
    if weight > 0.5:
        x = x.abs()
    return x * weight


for rate in (0.1, 0.2):
    decay(torch.ones(3), rate)
