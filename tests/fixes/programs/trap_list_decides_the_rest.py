# ideal: none
# trap: what follows is computed with the numbers, so they cannot be read after the graph
import torch


@torch.compile(backend="eager")
def f(x):
    y = x * 2
    names = [str(v) for v in y.tolist()]
    if "2.0" in names:
        y = y - 1
    return y.sin(), names


print(*f(torch.ones(3)))
print(*f(torch.zeros(3)))
