import torch

@torch.compile(backend="eager")
def f(x):
    return x @ x

f(torch.ones(3, 3))
with torch.autocast("cpu", torch.bfloat16):
    f(torch.ones(3, 3))
