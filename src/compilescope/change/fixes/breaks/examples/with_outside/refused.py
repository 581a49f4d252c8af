#: because: unknown where|outside the `with`|not set in exactly one place
import torch


def f(x):
    z = x.exp()
    with torch.autograd.graph.save_on_cpu():
        y = x.sin()
    return (y * z).sum()


torch.compile(f, backend="eager")(torch.ones(3))
