import torch


def _f_result(x, seen):
    y = x.sin()
    return y + seen.mean(0)


@torch.compile(backend="eager")
# left to Python, but not what it calls; torch.compiler has no decorator for this
@torch._dynamo.decorators.skip
def f(x, past):
    seen = torch.stack(past)
    return _f_result(x, seen)


past = []
for _ in range(4):
    past.append(torch.ones(3))
    f(torch.ones(3), past)
