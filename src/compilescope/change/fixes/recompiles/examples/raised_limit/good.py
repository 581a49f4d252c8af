import torch


@torch.compile(backend="eager", recompile_limit=64)
def f(x, name):
    return x + 1 if name == "a" else x * 2


for name in "abcdefghijkl":
    f(torch.ones(3), name)
