import gc

import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

for _ in range(3):
    made = {}
    exec("def g(x): return x + 1", made)
    print(f(torch.ones(3), made["g"]))
    made = None
    gc.collect()
