#: because: `meter` is changed in a function
import torch


class Meter:
    count = 0


meter = Meter()


def f(x):
    meter.count += 1
    print("call", meter.count, x.sum().item())
    return x * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3))
g(torch.ones(3))
