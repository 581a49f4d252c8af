import torch

@torch.compile(backend="eager")
def f(x, double):
    if double:
        return x * 2
    return x + 1

f(torch.ones(3), False)
f(torch.ones(3), True)
