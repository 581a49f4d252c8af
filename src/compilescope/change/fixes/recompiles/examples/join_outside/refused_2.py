#: because: the function does more with `past` than join it
import torch


@torch.compile(backend="eager")
def f(x, past):
    for each in past:
        x = x * each
    return x + torch.stack(past).mean(0)


past = []
for _ in range(4):
    past.append(torch.ones(3))
    f(torch.ones(3), past)
