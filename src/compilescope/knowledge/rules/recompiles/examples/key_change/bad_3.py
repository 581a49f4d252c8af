import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * 2 if "double" in options else x + 1

f(torch.ones(3), {"other"})
f(torch.ones(3), {"double"})
