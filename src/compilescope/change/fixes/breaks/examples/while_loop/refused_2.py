#: because: is used after the loop
import torch


def f(x):
    turns = 0
    while x.abs().max() > 1:
        x = x / 2
        turns += 1
    return x, turns


torch.compile(f, backend="eager")(torch.full((3,), 4.0))
