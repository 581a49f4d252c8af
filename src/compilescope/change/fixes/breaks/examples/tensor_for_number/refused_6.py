#: because: no run shows what is done with
import torch


def peak(x) -> float:
    return x.abs().max().item()


def scaled(x):
    high = peak(x)
    return x * (1 + high)


scaled = torch.compile(scaled, backend="eager")
scaled(torch.arange(3.0))
