import torch


@torch.compile(backend="eager", dynamic=False)
def _guide_result(x, scale, strength_equals):
    if strength_equals:
        return x * 2
    return x + scale * x.tanh()


def guide(x, strength):
    strength_equals = strength == 1.0
    scale = torch.tensor(round(strength, 1))
    return _guide_result(x, scale, strength_equals)


for strength in (1.0, 1.25, 2.0, 3.0):
    guide(torch.ones(3), strength)
