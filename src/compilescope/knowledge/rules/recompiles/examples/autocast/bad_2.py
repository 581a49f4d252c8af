import torch

@torch.compile(backend="eager")
def f(x):
    return x @ x

for dtype in (torch.bfloat16, torch.float16):
    with torch.autocast("cpu", dtype):
        f(torch.ones(3, 3))
