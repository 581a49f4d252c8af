import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2 if x.shape[0] == y.shape[0] else x + 1

f(torch.ones(3), torch.ones(4))
f(torch.ones(3), torch.ones(3))
