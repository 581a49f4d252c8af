import torch


def f(x):
    y = x.sin()
    # Only where there is something.
    packed = y.to_sparse()
    dense = packed.to_dense() * 2  # and back
    return dense.cos()


torch.compile(f, backend="eager")(torch.ones(3))
