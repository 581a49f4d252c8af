# ideal: value-read-first
# trap: whole numbers on one side, fractions on the other
import torch


def f(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x * 0.5
    return y + y


g = torch.compile(f, backend="eager")
for k in (2, -2):
    print(g(torch.full((2,), k)))
