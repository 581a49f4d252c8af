#: because: it is unknown whether `weight` is a tensor
import torch


def limits(x, weights):
    high = x.max().item()
    return x * 2, [high * weight for weight in weights]


limits = torch.compile(limits, backend="eager")
limits(torch.arange(3.0), [0.5, 0.25])
