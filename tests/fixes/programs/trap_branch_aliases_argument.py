# ideal: value-read-first
# trap: where the branch is not taken, `y` is the argument itself, which is then changed in place
import torch


def f(x):
    y = x
    if x.sum() > 10:
        y = x * 2
    y += 1
    return y.sum()


g = torch.compile(f, backend="eager")
for k in (1.0, 9.0):
    x = torch.full((2,), k)
    print(g(x).item(), x.tolist())
