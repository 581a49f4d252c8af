# ideal: value-read-first
# trap: a list grows only where the branch is taken
import torch


def f(x, history):
    if x.sum() > 0:
        history.append(x)
        x = x * 2
    return x + 1


g = torch.compile(f, backend="eager")
seen = []
for k in (1.0, -1.0):
    g(torch.full((2,), k), seen)
print(len(seen))
