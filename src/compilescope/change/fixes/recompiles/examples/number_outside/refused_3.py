#: because: the function sets `rate`
import torch


@torch.compile(backend="eager", dynamic=False)
def decay(x, rate):
    rate = max(rate, 0.1)
    return x * round(rate, 2)


for rate in (0.15, 0.25, 0.35):
    decay(torch.ones(3), rate)
