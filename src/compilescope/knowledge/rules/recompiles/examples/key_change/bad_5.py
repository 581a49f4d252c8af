import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * 2 if options.get("double") else x + 1

f(torch.ones(3), {"double": True})
f(torch.ones(3), {"other": True})
