import torch


def f(x):
    y = x + 1
    print("step", y)
    return y * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3))
