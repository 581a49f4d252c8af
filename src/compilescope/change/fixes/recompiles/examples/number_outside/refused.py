#: because: may raise, and only runs on some paths
import torch


@torch.compile(backend="eager", dynamic=False)
def soften(x, temperature):
    if temperature == 0:
        return x.sign()
    return x * (1 / temperature)


for temperature in (2, 3, 0, 4):
    soften(torch.ones(3), temperature)
