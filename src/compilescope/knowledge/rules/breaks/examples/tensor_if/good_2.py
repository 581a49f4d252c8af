import torch

@torch.compile(backend="eager")
def when_true(x):
    y = x * 2
    z = y + 1
    return y + z

@torch.compile(backend="eager")
def when_false(x):
    y = x - 1
    z = y * 3
    return y + z

x = torch.ones(3)
print(when_true(x) if x.sum() > 0 else when_false(x))
