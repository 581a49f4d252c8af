import torch

@torch.compile(backend="eager")
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    print(f(torch.ones(3), torch.arange(5.0), torch.tensor(n)))
