import torch

def f(x):
    return (x > 0).nonzero() + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
