#: because: for more than its truth
import torch


def f(x, weights):
    overflow = False
    for weight in weights:
        x = x @ weight
        overflow = overflow or x.abs().max() > 10
    if overflow:
        x = x * 0.5
    return x + 1, overflow


torch.compile(f, backend="eager")(torch.ones(2, 3), [torch.ones(3, 3), torch.eye(3)])
