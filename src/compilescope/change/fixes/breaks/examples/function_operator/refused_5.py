#: because: `out.unsqueeze_\(0\)` changes a size in place
import torch


def filled(x):
    out = torch.zeros(x.shape)
    for i in torch.nonzero(x):
        if i[0] > 0:
            out[i[0]] = 2
    out.unsqueeze_(0)
    return out


@torch.compile(backend="eager")
def f(x):
    return filled(x) + x


f(torch.tensor([1, 0, 3]))
