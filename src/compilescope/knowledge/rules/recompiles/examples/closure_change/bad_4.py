import torch

def make(scale):
    def g(x):
        return x * scale

    return g

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

for scale in (2, 3, 4):
    print(f(torch.ones(3), make(scale)))
