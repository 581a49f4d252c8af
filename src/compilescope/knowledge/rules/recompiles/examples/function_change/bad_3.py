import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

print(f(torch.ones(3), torch.relu))
print(f(torch.ones(3), torch.tanh))
