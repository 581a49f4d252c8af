import torch

def f(x):
    picked = x[x > 0]
    return picked.sum() * 2

print(torch.compile(f, backend="eager")(torch.ones(3)))
