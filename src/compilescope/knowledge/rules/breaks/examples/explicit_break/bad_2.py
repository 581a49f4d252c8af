import torch

@torch.compiler.disable
def helper(x):
    return x * 3

def f(x):
    return helper(x + 1) * 2

print(torch.compile(f, backend="eager")(torch.ones(3)))
