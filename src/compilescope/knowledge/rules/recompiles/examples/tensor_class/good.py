import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3, requires_grad=True)).tolist())
parameter = torch.nn.Parameter(torch.ones(3))
print(f(parameter.view_as(parameter)).tolist())
