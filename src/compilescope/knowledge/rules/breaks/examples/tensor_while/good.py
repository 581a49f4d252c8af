import torch

@torch.compile(backend="eager")
def halved(x):
    return x / 2

def f(x):
    while x.abs().max() > 1:
        x = halved(x)
    return x + 1

print(f(torch.full((3,), 4.0)))
