# ideal: none
# trap: what was put into the list is changed afterwards, and the list shows it
import torch

kept = []


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    kept.append(y)
    y.mul_(2)
    return y + 1


for n in range(4):
    f(torch.full((2,), float(n)))
print([y.tolist() for y in kept])
