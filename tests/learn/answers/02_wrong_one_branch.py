import torch


def step(x):
    return torch.tanh(x) * 2
