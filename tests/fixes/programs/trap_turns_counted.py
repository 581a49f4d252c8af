# ideal: any
# trap: the number of turns is a result too
import torch


def f(x):
    turns = 0
    while x.max() > 1:
        x = x / 2
        turns += 1
    return x, turns


g = torch.compile(f, backend="eager")
for k in (0.5, 20.0):
    print(g(torch.full((2,), k)))
