import torch

@torch.compile(backend="eager")
def f(x, counts):
    return x * len(list(counts))

for length in (3, 4):
    print(f(torch.ones(3), iter(range(length))))
