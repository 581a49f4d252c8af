import torch


def f(x):
    # Until it fits.
    while x.abs().max() > 1:
        half = x / 2  # slowly
        x = half
    return x + 1


torch.compile(f, backend="eager")(torch.full((3,), 4.0))
