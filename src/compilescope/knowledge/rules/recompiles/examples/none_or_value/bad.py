import torch

@torch.compile(backend="eager")
def f(x, bias=None):
    y = x * 2
    return y if bias is None else y + bias

print(f(torch.ones(3)))
print(f(torch.ones(3), torch.ones(3)))
