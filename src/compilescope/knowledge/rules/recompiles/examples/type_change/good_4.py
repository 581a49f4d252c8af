import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * options.scale

class Options:
    scale = 2

for _ in range(2):
    print(f(torch.ones(3), Options()))
