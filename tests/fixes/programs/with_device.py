# ideal: device-given
import torch


def positional(x):
    with torch.device("cpu"):
        steps = torch.arange(x.shape[-1], dtype=x.dtype)
        rates = torch.linspace(0, 1, x.shape[-1])
    return x + steps * rates


print(torch.compile(positional, backend="eager")(torch.ones(4)).tolist())
