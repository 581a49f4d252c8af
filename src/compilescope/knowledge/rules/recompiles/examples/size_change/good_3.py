import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for size in (3, 5, 7):
    padded = torch.nn.functional.pad(torch.ones(size), (0, 8 - size))
    print(f(padded)[:size])
