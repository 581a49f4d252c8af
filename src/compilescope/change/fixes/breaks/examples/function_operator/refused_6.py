#: because: what is returned depends on `size`
import torch


def filled(x):
    size = 0
    other = torch.zeros(x.shape)
    for i in torch.nonzero(x):
        if i[0] > 0:
            other[i[0]] = 2
            size = 2
    out = torch.zeros(size + 1)
    return out


@torch.compile(backend="eager")
def f(x):
    return filled(x) + x


f(torch.tensor([1, 0, 3]))
