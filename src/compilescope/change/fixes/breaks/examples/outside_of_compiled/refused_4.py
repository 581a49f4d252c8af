#: because: what is returned may depend on what runs before it
import torch


def check(one, other):
    if one.shape != other.shape:
        raise ValueError("not alike")
    if one.isnan().any():
        raise ValueError("not a number")


@torch.compile(backend="eager")
def score(x, y):
    logs = x.log()
    powers = y.exp()
    check(logs, powers)
    return logs + powers


for value in (4.0, -4.0):
    try:
        score(torch.full((3,), value), torch.ones(3))
    except ValueError:
        pass
