import torch


def _f_results(x):
    y = x.sin()
    value = y * 2
    return value, y


@torch.compile(backend="eager")
# left to Python, but not what it calls; torch.compiler has no decorator for this
@torch._dynamo.decorators.skip
def f(x):
    value, y = _f_results(x)
    return y, value.tolist()


f(torch.ones(3))
