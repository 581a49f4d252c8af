import torch

@torch.compile(backend="eager")
def f(x, scale):
    return x * scale

for scale in (2, 3, 4):
    print(f(torch.ones(3), torch.tensor(scale)))
