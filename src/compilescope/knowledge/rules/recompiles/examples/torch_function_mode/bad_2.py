import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)))
with torch._C.DisableTorchFunction():
    print(f(torch.ones(3)))
