import torch

def f(x):
    assert (x > 0).all(), x.shape
    return x + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
