import torch


def f(x):
    y = x * 2
    if y.grad_fn is not None and x.dim() > 0:  # part of a graph
        y = y + 1
    return y.sum()


torch.compile(f, backend="eager")(torch.ones(3, requires_grad=True))
