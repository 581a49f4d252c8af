import torch

@torch.compile(backend="eager")
def f(xs):
    return xs[0] * 2

print(f([torch.ones(3)]))
print(f((torch.ones(3),)))
