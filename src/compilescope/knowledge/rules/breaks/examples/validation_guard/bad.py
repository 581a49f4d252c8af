import torch

def f(x):
    y = x * 2
    if (y < 0).any():
        raise ValueError("negative")
    return y + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
