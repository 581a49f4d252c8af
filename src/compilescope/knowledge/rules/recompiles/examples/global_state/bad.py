import torch

@torch.compile(backend="eager")
def f(x):
    return x @ x

print(f(torch.ones(3, 3)))
torch.use_deterministic_algorithms(True)
print(f(torch.ones(3, 3)))
torch.use_deterministic_algorithms(False)
