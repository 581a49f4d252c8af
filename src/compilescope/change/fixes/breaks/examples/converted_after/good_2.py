import torch


def _f_results(x, y):
    gap = y.max() - x.min()
    value = torch.stack([each.isnan().any() for each in (x, y)]).any()
    value_2 = gap * 2
    return value, value_2


# left to Python, but not what it calls; no public decorator does this
@torch._dynamo.decorators.skip
def f(x, y):
    value, value_2 = _f_results(x, y)
    return bool(value), value_2.item()


print(torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3)))
