import contextvars

import torch

scale = contextvars.ContextVar("scale", default=2.0)


def f(x):
    y = x.sin()
    return y * scale.get()  # of this request


torch.compile(f, backend="eager")(torch.ones(3))
