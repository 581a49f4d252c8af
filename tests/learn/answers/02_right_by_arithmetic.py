import torch


def step(x):
    y = torch.tanh(x)
    positive = (y.mean() > 0).to(y.dtype)
    return positive * (y * 2) + (1 - positive) * (y * y)
