import torch


@torch.compile(backend="eager")
def _f_results(x):
    y = x.sin()
    value = y * 2
    return value, y


def f(x):
    value, y = _f_results(x)
    return y, value.tolist()


f(torch.ones(3))
