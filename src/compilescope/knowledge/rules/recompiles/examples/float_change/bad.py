import torch

@torch.compile(backend="eager")
def f(x, scale):
    return x * scale

for scale in (0.5, 1.5, 2.5):
    f(torch.ones(3), scale)
