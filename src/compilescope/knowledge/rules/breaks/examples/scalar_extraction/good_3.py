import torch

def f(x):
    return x.sum()

x = torch.ones(3)
print(x * int(torch.compile(f, backend="eager")(x)))
