# ideal: any
# trap: the sides have different shapes, which broadcast to one another
import torch


def f(x):
    if x.sum() > 0:
        y = x.sum(0, keepdim=True)
    else:
        y = x
    return y * 2


g = torch.compile(f, backend="eager")
for k in (1.0, -1.0):
    print(tuple(g(torch.full((3, 2), k)).shape))
