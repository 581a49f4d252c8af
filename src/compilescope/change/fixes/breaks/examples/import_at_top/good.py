import torch


try:
    import no_such_package  # the fast one

    fast = True
except ImportError:
    fast = False


def f(x):
    return x + (2 if fast else 1)


torch.compile(f, backend="eager")(torch.ones(3))
