import random
import torch


def f(x):
    return x * random.random()  # jitter


torch.compile(f, backend="eager")(torch.ones(3))
