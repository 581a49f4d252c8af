import math

import torch

@torch.compile(backend="eager")
def f(x, factor):
    return x * factor

for p in (0.1, 0.2, 0.3):
    print(f(torch.ones(3), torch.tensor(math.exp(p), dtype=torch.float64)))
