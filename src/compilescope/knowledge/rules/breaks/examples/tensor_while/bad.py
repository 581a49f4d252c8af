import torch

def f(x):
    while x.abs().max() > 1:
        x = x / 2
    return x + 1

print(torch.compile(f, backend="eager")(torch.full((3,), 4.0)))
