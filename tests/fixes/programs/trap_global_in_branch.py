# ideal: any
# trap: a global counts how often the branch was taken
import torch

taken = 0


def f(x):
    global taken
    if x.sum() > 0:
        taken = taken + 1
        x = x * 2
    return x + 1


g = torch.compile(f, backend="eager")
for k in (1.0, -1.0, 2.0):
    g(torch.full((2,), k))
print(taken)
