import torch


@torch.compile(backend="eager")
def f(x, mask=None):
    if mask is None:
        mask = torch.ones(3)
    return (x * mask).sum()


for mask in (None, torch.arange(3.0)):
    f(torch.ones(3), mask)
