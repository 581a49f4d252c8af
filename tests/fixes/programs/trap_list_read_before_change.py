# ideal: none
# trap: the list is made after the tensor was changed, in the same line
import torch


@torch.compile(backend="eager")
def f(x):
    y = x * 2
    return y.add_(1), y.sum().tolist(), y.mul_(2)


print(*f(torch.ones(3)))
print(*f(torch.zeros(3)))
