import torch

class Tagged(torch.Tensor):
    pass

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)).tolist())
print(f(torch.ones(3).as_subclass(Tagged).as_subclass(torch.Tensor)).tolist())
