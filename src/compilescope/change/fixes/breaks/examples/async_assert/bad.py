import torch


def f(x):
    y = x * 2
    # Only what is positive.
    if (y < 0).any():
        raise ValueError("negative")  # tell them
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
