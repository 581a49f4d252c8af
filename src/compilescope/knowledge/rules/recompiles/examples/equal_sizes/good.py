import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2, y * 2

f(torch.ones(2), torch.ones(3))
f(torch.ones(7), torch.ones(8))
print(f(torch.ones(4), torch.ones(4)))
print(f(torch.ones(5), torch.ones(6)))
