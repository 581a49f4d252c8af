import torch


@torch.compile(backend="eager", dynamic=False)
def guide(x, strength):
    if strength == 1.0:
        return x * 2
    scale = round(strength, 1)
    return x + scale * x.tanh()


for strength in (1.0, 1.25, 2.0, 3.0):
    guide(torch.ones(3), strength)
