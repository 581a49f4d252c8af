#: because: `last` is read elsewhere too
import torch


@torch.compile(backend="eager")
def f(x, kinds):
    out, last = torch.zeros_like(x), x
    mask = kinds == 2
    if mask.any():
        last = x[mask] * 2
        out[mask] = last
    return out, last


f(torch.ones(4, 2), torch.tensor([0, 2, 2, 0]))
