# ideal: none
# An argument that is a tensor or None: one graph for each is what it takes, and no change is exact.
import torch


@torch.compile(backend="eager")
def f(x, mask=None):
    if mask is not None:
        x = x.masked_fill(mask, 0.0)
    return x + 1


x = torch.arange(3.0)
for mask in (None, x > 1, None, x > 0):
    print(f(x, mask).tolist())
