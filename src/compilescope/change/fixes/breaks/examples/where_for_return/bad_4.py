#: note: A number is compared, and the answer has a name.
import torch


def f(x, y, tolerance):
    close = (x - y).abs().max().item() < tolerance and bool(x.isfinite().all())
    if not close:
        return (x + y) / 2
    return y * 1


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3), 2.0)
