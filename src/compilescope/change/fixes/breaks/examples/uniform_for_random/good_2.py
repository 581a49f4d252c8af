import random
import torch


def f(x):
    scale = 0.9 + 0.2 * torch.full((), random.uniform(0.0, 1.0), dtype=torch.float64)
    return x * scale


torch.compile(f, backend="eager")(torch.ones(3))
