import contextvars

import torch

scale = contextvars.ContextVar("scale", default=2.0)


def _f_result(x, scale_value):
    y = x.sin()
    return y * scale_value  # of this request


# left to Python, but not what it calls; no public decorator does this
@torch._dynamo.decorators.skip
def f(x):
    scale_value = scale.get()
    return _f_result(x, scale_value)


torch.compile(f, backend="eager")(torch.ones(3))
