#: because: what is returned may depend on what runs before it
import torch


@torch.compile(backend="eager")
def f(x, mask=None):
    y = x.sin()
    if mask is None:
        mask = y > 0
    return (y * mask).sum()


for mask in (None, torch.arange(3.0)):
    f(torch.ones(3), mask)
