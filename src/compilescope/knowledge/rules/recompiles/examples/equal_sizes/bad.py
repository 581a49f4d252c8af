import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2, y * 2

print(f(torch.ones(4), torch.ones(4)))
print(f(torch.ones(5), torch.ones(6)))
