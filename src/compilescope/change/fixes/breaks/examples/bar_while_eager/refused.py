#: because: no progress bar is created here
import torch
from tqdm import tqdm


def f(x):
    bar = tqdm(range(3), disable=True)
    for step in bar:
        x = x * 2 + step
    return x


torch.compile(f, backend="eager")(torch.ones(3))
