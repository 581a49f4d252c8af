import torch

@torch.compile(backend="eager")
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    print(f(torch.ones(3), [1.5, 2.5, 3.5, 4.5, 5.5], n))
