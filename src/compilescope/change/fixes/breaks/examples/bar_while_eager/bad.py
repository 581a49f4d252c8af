import torch
from tqdm import tqdm


def f(x):
    for step in tqdm(range(3), disable=True):  # a few
        x = x * 2 + step
    return x


torch.compile(f, backend="eager")(torch.ones(3))
