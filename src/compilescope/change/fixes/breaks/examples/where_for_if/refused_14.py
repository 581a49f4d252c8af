#: because: gradient of `loss / total` may be NaN
import torch


def f(x, weights, on):
    total = weights.sum()
    loss = (x * weights).sum()
    # Where the first one is true, the second says nothing of the sum.
    if on.any():
        loss = loss * 2
    elif weights.min() >= 0:
        loss = loss / total
    return loss


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3), torch.ones(3) > 0)
