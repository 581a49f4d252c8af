import torch

@torch.compile(backend="eager")
def f(x, y):
    return x + y

same = torch.ones(3)
print(f(same, same))
print(f(same, torch.ones(3)))
