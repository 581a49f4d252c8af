import random
import torch


def f(x):
    return x * random.uniform(0.0, 1.0)  # jitter


torch.compile(f, backend="eager")(torch.ones(3))
