#: because: needs a number
import torch


@torch.compile(backend="eager", dynamic=False)
def window(x, width):
    half = int(width / 2)
    return x[half:-half] * 2


for width in (2.5, 4.5, 6.5):
    window(torch.ones(20), width)
