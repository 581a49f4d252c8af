import torch

def f(x):
    return x * int(x.sum())

print(torch.compile(f, backend="eager")(torch.ones(3)))
