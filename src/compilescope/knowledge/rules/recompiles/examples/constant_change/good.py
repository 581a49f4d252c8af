import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for dtype in (torch.float32, torch.float64):
    print(f(torch.ones(3)).to(dtype))
