#: note: What is computed outside of the mask is put to rest before and after.
import torch


def f(x):
    loss = ((x[x > 0] - 1) ** 2).mean()
    return loss


torch.compile(f, backend="eager")(torch.ones(3))
