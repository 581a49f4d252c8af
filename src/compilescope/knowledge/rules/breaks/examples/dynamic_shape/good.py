import torch

def f(picked):
    return picked.sum() * 2

x = torch.ones(3)
print(torch.compile(f, backend="eager")(x[x > 0]))
