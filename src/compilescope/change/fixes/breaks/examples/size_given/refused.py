#: because: nothing that follows says how many rows there must be
import torch


def f(x, parts, counts):
    # One row would be added to all.
    return x + parts.repeat_interleave(counts, dim=0)


torch.compile(f, backend="eager")(torch.ones(6, 4), torch.ones(3, 4), torch.tensor([1, 2, 3]))
