# ideal: none
# trap: the argument is written to before its sum is asked for
import torch


@torch.compile(backend="eager")
def settle(x):
    x.clamp_(min=0.0)
    if x.sum() > 1:
        return x[:1] * 2
    return x.double()


for v in (1.0, -1.0):
    print(settle(torch.full((3,), v)).tolist())
