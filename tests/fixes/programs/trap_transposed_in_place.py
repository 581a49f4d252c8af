# ideal: none
# trap: the function writes into its argument; a contiguous copy would take the writing with it
import torch


@torch.compile(backend="eager")
def accumulate(total, x):
    total.add_(x)
    return total.sum()


one, other = torch.zeros(3, 4), torch.zeros(4, 3)
accumulate(one, torch.ones(3, 4))
accumulate(other.t(), torch.ones(3, 4))
print(one.sum().item(), other.sum().item())
