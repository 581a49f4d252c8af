#: because: a local variable of the function
import torch


def f(x, scale):
    class Scaled:
        def __call__(self, y):
            return y * scale

    return Scaled()(x)


torch.compile(f, backend="eager")(torch.ones(3), 2.0)
