import torch


@torch.compiler.disable
def step(x):
    y = torch.tanh(x)
    return y * 2 if y.mean() > 0 else y * y
