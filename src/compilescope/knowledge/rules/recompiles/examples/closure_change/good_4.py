import torch

def g(x, scale):
    return x * scale

@torch.compile(backend="eager")
def f(x, g, scale):
    return g(x, scale)

for scale in (2, 3, 4):
    print(f(torch.ones(3), g, torch.tensor(scale)))
