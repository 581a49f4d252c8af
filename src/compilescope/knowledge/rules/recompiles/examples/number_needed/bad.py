import math

import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * math.exp(p)

for p in (0.1, 0.2, 0.3):
    print(f(torch.ones(3), p))
