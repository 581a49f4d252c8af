import torch

@torch.compile(backend="eager")
def f(x, entry):
    return x + entry

table = [1.5, 2.5, 3.5, 4.5, 5.5]
for n in (2, 3, 4):
    print(f(torch.ones(3), torch.tensor(table[n], dtype=torch.float64)))
