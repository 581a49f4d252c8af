# ideal: cond-for-if
import torch


@torch.compile(backend="eager")
def f(x, heads):
    if x.mean() > 0:
        out = torch.stack([head * x for head in heads]).sum(0)
    else:
        out = x * 0.5
    return out + 1


for scale in (1.0, -1.0):
    print(f(torch.full((3,), scale), [torch.ones(3), torch.arange(3.0)]).tolist())
