#: because: more than the function and its input
import torch


def f(x):
    full = torch.autograd.functional.jacobian(lambda v: v**2, x, create_graph=True)
    return full.diagonal() * 2


torch.compile(f, backend="eager")(torch.ones(3))
