#: note: All of a line at once: Dynamo would only stop at the next one.
import torch


def f(x):
    span = x.max().item() - x.min().item()
    return x * span


torch.compile(f, backend="eager")(torch.ones(3))
