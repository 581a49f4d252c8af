#: because: `past` had two lengths only, and a tensor of two sizes is compiled twice as well
import torch


@torch.compile(backend="eager")
def f(x, past):
    return x + torch.stack(past).mean(0)


for n in (2, 3, 2):
    f(torch.ones(3), [torch.ones(3)] * n)
