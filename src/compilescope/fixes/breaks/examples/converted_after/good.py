import torch


def _f_compiled(x):
    y = x.sin()
    value = y * 2
    return value, y


@torch.compile(backend="eager")
@torch._dynamo.decorators.skip
def f(x):
    value, y = _f_compiled(x)
    return y, value.tolist()


f(torch.ones(3))
