#: because: a tensor is used as more than a size in `most / 2`
import torch


@torch.compile(backend="eager")
def f(x, mask):
    most = mask.sum(dim=1).max()
    return x.new_zeros(2, most) + torch.arange(most) + most / 2


f(torch.ones(2, 3), torch.tensor([[True, True, False], [True, False, False]]))
