#: because: `x\[0\] = 2` may change what it is given
import torch


def filled(x):
    out = torch.zeros(x.shape)
    for i in torch.nonzero(x):
        if i[0] > 0:
            x[0] = 2
    return out


@torch.compile(backend="eager")
def f(x):
    return filled(x) + x


f(torch.tensor([1, 0, 3]))
