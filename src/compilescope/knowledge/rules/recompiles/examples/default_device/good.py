import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(3)
torch.set_default_device("cpu")
print(f(x))
print(f(x))
torch.set_default_device(None)
