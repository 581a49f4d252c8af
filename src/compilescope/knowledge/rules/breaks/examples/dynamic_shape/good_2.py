import torch

def f(x):
    return torch.nonzero_static(x > 0, size=3) + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
