import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3))
with torch.no_grad():
    f(torch.ones(3))
