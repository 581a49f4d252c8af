import torch

@torch.compile(backend="eager")
def f(x, dtype):
    return (x * 2).to(dtype)

for dtype in (torch.float32, torch.float64):
    print(f(torch.ones(3), dtype))
