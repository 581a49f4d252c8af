import torch

SCALE = 0.5

@torch.compile(backend="eager")
def f(x):
    return x * SCALE

for _ in range(3):
    print(f(torch.ones(3)))
    SCALE += 0.5
