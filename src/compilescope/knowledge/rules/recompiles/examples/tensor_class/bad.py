import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3, requires_grad=True)).tolist())
print(f(torch.nn.Parameter(torch.ones(3))).tolist())
