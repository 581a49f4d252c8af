import torch


@torch.compile(backend="eager")
def _f_sum(x, mask):
    return (x * mask).sum()


def f(x, mask=None):
    if mask is None:
        mask = torch.ones(3)
    return _f_sum(x, mask)


for mask in (None, torch.arange(3.0)):
    f(torch.ones(3), mask)
