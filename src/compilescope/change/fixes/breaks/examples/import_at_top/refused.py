#: because: more than import
import torch


def f(x):
    try:
        import no_such_package

        x = no_such_package.scale(x)
    except ImportError:
        x = x * 2
    return x


torch.compile(f, backend="eager")(torch.ones(3))
