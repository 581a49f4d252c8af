#: because: many times or never
import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


out = [f(torch.ones(size)) for size in (3, 5)]
