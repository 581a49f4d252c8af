#: because: `torch.dropout\(x, 1 - keep, True\)` needs a number
import torch


@torch.compile(backend="eager", dynamic=False)
def thin(x, keep):
    return torch.dropout(x, 1 - keep, True)


for keep in (0.1, 0.2):
    thin(torch.ones(3), keep)
