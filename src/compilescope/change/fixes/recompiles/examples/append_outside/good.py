import torch

means = []


@torch.compile(backend="eager")
def _f_results(x):
    y = x.sin()
    value = y.mean()
    value_2 = y * 2
    return value, value_2


def f(x):
    value, value_2 = _f_results(x)
    means.append(value)
    return value_2


for _ in range(3):
    f(torch.ones(3))
