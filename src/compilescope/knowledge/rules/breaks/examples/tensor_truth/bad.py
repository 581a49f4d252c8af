import torch

def f(x, y):
    flag = x.any() or y.any()
    return x + y * flag

print(torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3)))
