import torch


@torch._dynamo.nonstrict_trace
def _dense(y):
    # Only where there is something.
    packed = y.to_sparse()
    dense = packed.to_dense() * 2  # and back
    return dense


def f(x):
    y = x.sin()
    dense = _dense(y)
    return dense.cos()


torch.compile(f, backend="eager")(torch.ones(3))
