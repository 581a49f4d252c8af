import torch

@torch.compile(backend="eager")
def f(xs):
    return torch.stack(xs).sum(0)

for length in (2, 3, 4):
    print(f([torch.ones(3) for _ in range(length)]))
