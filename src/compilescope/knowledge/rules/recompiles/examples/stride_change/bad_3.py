import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(2, 3, 4, 5))
f(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last))
