import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

for size in (3, 4, 1, 0):
    padded = torch.nn.functional.pad(torch.ones(size), (0, max(0, 2 - size)))
    print(f(padded)[:size])
