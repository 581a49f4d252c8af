import torch

@torch.compile(backend="eager")
def f(x, y):
    return x + y

same = torch.ones(3)
print(f(same, torch.ones(3)))
print(f(same, same.clone()))
