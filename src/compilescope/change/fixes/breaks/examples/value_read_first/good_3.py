import torch


def _f_result(x, mask, taken, taken_2):
    y = x.double() if taken else x
    z = y[mask] if taken_2 else y * 2
    return z + 1


# left to Python, but not what it calls; no public decorator does this
@torch._dynamo.decorators.skip
def f(x, mask):
    hidden = (~mask).any()
    taken = bool(x.sum() > 4)
    taken_2 = bool(hidden)
    return _f_result(x, mask, taken, taken_2)


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3, dtype=torch.bool))
