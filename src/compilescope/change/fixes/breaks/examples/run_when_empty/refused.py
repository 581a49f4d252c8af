#: because: of no rows, .*amax.* may be anything
import torch


@torch.compile(backend="eager")
def f(x, kinds):
    out = torch.zeros_like(x)
    mask = kinds == 2
    if mask.any():
        out[mask] = x[mask] - x[mask].amax(0)
    return out + 1


f(torch.ones(4, 2), torch.tensor([0, 2, 2, 0]))
