#: because: part of an argument
import torch


@torch.compile(backend="eager")
def decay(x, rates):
    return x * (1 - rates["first"])


for rate in (0.1, 0.2):
    decay(torch.ones(3), {"first": rate})
