import contextvars

import torch

scale = contextvars.ContextVar("scale", default=2.0)


def _f_compiled(x, scale_value):
    y = x.sin()
    return y * scale_value  # of this request


@torch._dynamo.decorators.skip
def f(x):
    scale_value = scale.get()
    return _f_compiled(x, scale_value)


torch.compile(f, backend="eager")(torch.ones(3))
