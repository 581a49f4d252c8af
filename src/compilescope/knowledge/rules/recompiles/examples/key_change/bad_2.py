import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * 2 if "double" in options else x + 1

print(f(torch.ones(3), {"other": 1}))
print(f(torch.ones(3), {"double": 1}))
