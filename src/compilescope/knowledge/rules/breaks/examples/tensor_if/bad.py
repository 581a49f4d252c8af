import torch

def f(x):
    y = x.sin()
    if y.sum() > 0:
        y = y * 2
    else:
        y = y - 1
    return y + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
