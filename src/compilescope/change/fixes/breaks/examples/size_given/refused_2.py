#: because: nothing that follows says how many rows there must be
import torch


def f(x, parts, counts):
    spread = parts.repeat_interleave(counts, dim=0)
    if x.shape[1] > 8:
        return spread.sum()
    return torch.cat([x, spread], dim=1).sum()


torch.compile(f, backend="eager")(torch.ones(6, 4), torch.ones(3, 4), torch.tensor([1, 2, 3]))
