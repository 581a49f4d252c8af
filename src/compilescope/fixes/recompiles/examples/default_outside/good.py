import torch


def _f_result(x, mask):
    return (x * mask).sum()


@torch.compile(backend="eager")
# left to Python, but not what it calls; torch.compiler has no decorator for this
@torch._dynamo.decorators.skip
def f(x, mask=None):
    if mask is None:
        mask = torch.ones(3)
    return _f_result(x, mask)


for mask in (None, torch.arange(3.0)):
    f(torch.ones(3), mask)
