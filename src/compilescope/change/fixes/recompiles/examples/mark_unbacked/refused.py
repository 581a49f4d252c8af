#: because: checks whether the size is 1
import torch

norm = torch.nn.BatchNorm1d(3)


@torch.compile(backend="eager")
def f(x):
    return norm(x) * 2


norm.eval()
for size in (4, 1):
    x = torch.ones(size, 3)
    f(x)
