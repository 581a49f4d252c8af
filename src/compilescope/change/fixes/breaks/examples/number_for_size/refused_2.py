#: because: `counts\[0\]` may be changed through another tensor
import torch


@torch.compile(backend="eager")
def f(x, mask):
    counts = mask.sum(dim=1)
    first = counts[0]
    counts += 1
    return x.new_zeros(2, first) + torch.arange(first)


f(torch.ones(2, 3), torch.tensor([[True, True, False], [True, False, False]]))
