#: changes: the first call runs on the other device
import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3, device="meta"))
f(torch.ones(3, device="meta"))
