#: because: distinguishes the types
import torch


@torch.compile(backend="eager")
def total(xs):
    return xs[0] * (2 if isinstance(xs, list) else 3)


total([torch.ones(3)])
total((torch.ones(3),))
