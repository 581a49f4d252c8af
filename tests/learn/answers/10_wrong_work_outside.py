import torch


@torch.compiler.disable
def outside(x):
    return (x.amax(-1) - x.amin(-1)) / x.std(-1)


def spread(x):
    return outside(x + 0)
