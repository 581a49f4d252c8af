#: changes: the first call computes in bfloat16 too
import torch

@torch.compile(backend="eager")
def f(x):
    return x @ x

with torch.autocast("cpu", torch.bfloat16):
    f(torch.ones(3, 3))
    f(torch.ones(3, 3))
