# ideal: outside-of-compiled
# The class of the exception matters, it is caught by it: as part of the graph the check would raise
# another.
import torch


class OutOfRange(ValueError):
    pass


def f(x):
    if (x < 0).any():
        raise OutOfRange("negative")
    return x.sqrt()


g = torch.compile(f, backend="eager")
for k in (4.0, -4.0):
    try:
        print(g(torch.full((2,), k)).tolist())
    except OutOfRange as error:
        print("skipped", error)
