import torch

@torch.compile(backend="eager")
def f(x, entry):
    return x + entry

for n in (2, 3, 4):
    print(f(torch.ones(3), torch.arange(5.0)[torch.tensor(n)]))
