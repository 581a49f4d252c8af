import torch

@torch.compile(backend="eager")
def f(x):
    return x @ x

torch.set_float32_matmul_precision("high")
print(f(torch.ones(3, 3)))
print(f(torch.ones(3, 3)))
torch.set_float32_matmul_precision("highest")
