import torch


@torch.compile(backend="eager")
def f(x):
    gain = torch.nn.Parameter(torch.ones(3))
    return x * gain


f(torch.ones(3))
