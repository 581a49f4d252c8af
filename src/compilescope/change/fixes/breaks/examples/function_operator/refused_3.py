#: because: `out` may share memory with what it is given
import torch


def filled(x):
    other = torch.zeros(x.shape)
    out = x.view(-1)
    for i in torch.nonzero(x):
        if i[0] > 0:
            other[i[0]] = 2
    return out


@torch.compile(backend="eager")
def f(x):
    return filled(x) + x


f(torch.tensor([1, 0, 3]))
