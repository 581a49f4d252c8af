import torch


def f(x, top):
    size = (
        x.norm()
    )
    taken = size > 10
    taken_2 = (1 < size) & (size <= 10)
    x = torch.where(taken, x * 0.5, torch.where(taken_2, x - 1, x))
    top.copy_(torch.where(taken, top, torch.where(taken_2, top + 1, top)))
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
