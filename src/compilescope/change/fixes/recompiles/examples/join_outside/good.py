import torch


@torch.compile(backend="eager")
def _f_result(x, seen):
    y = x.sin()
    return y + seen.mean(0)


def f(x, past):
    seen = torch.stack(past)
    return _f_result(x, seen)


past = []
for _ in range(4):
    past.append(torch.ones(3))
    f(torch.ones(3), past)
