import torch


def f(x):
    y = x + 1
    # Where are we?
    print("step", y)  # every step
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
