#: because: not just whether it exists
import torch


def f(x):
    y = x * 2
    name = y.grad_fn.name()
    return y + len(name)


torch.compile(f, backend="eager")(torch.ones(3, requires_grad=True))
