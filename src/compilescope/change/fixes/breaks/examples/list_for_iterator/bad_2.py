import torch


@torch.compile(backend="eager")
def total(x, *, parts):
    return x + sum(parts)


total(torch.ones(3), parts=(n * n for n in range(4)))
