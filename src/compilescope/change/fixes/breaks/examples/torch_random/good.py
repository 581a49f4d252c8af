import random
import torch


def f(x):
    noise = 0.1 * torch.randn(())  # a little
    return x + noise


torch.compile(f, backend="eager")(torch.ones(3))
