import torch

@torch.compile(backend="eager")
def f(x, double):
    return x * 2 if double else x + 1

f(torch.ones(3), True)
f(torch.ones(3), False)
