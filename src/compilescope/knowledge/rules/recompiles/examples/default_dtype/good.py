import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(3)
torch.set_default_dtype(torch.float64)
print(f(x).dtype)
print(f(x).dtype)
torch.set_default_dtype(torch.float32)
