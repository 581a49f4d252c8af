#: because: nothing that follows says how many rows there must be
import torch


def pooled(src, index, size=None):
    if size is None:
        size = int(index.max()) + 1
    return src.new_zeros(size, src.shape[-1]).index_add(0, index, src)


def f(x, batch, targets):
    # Of one graph the mean would be that of all targets.
    return (pooled(x, batch).sum(-1) - targets).square().mean()


torch.compile(f, backend="eager")(torch.ones(3, 2), torch.tensor([0, 0, 1]), torch.ones(2))
