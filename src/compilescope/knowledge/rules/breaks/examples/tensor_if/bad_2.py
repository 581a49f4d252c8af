import torch

def f(x):
    if x.sum() > 0:
        y = x * 2
        z = y + 1
    else:
        y = x - 1
        z = y * 3
    return y + z

print(torch.compile(f, backend="eager")(torch.ones(3)))
