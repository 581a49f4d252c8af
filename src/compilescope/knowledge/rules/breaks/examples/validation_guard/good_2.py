import torch

def f(x):
    return x + 1

x = torch.ones(3)
assert (x > 0).all(), x.shape
print(torch.compile(f, backend="eager")(x))
