#: because: another mode
import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


for flag in (True, False):
    with torch.set_grad_enabled(flag):
        f(torch.ones(3))
