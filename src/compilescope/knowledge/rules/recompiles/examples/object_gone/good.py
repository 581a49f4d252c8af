import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

made = {}
exec("def g(x): return x + 1", made)
for _ in range(3):
    print(f(torch.ones(3), made["g"]))
