#: note: What is set before the test is asked keeps its value too.
import torch


def f(x):
    for scale in (0.5, 0.25, 0.125):
        x = x * scale
        if x.max() < 1: break
    return x + 1


torch.compile(f, backend="eager")(torch.full((3,), 9.0))
