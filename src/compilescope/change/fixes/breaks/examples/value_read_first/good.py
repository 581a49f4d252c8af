import torch


def _f_result(x, mask, full):
    y = x.softmax(-1)
    if not full:
        y = y[mask]
    return y * 2


# left to Python, but not what it calls; no public decorator does this
@torch._dynamo.decorators.skip
def f(x, mask):
    full = bool(mask.all())  # nothing to hide
    return _f_result(x, mask, full)


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3, dtype=torch.bool))
