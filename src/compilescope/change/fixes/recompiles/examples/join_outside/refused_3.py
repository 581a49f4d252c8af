#: because: it is only evaluated on some paths through the function
import torch


@torch.compile(backend="eager")
def f(x, past):
    if len(past) > 1:
        x = x + torch.stack(past).mean(0)
    return x * 2


past = []
for _ in range(4):
    past.append(torch.ones(3))
    f(torch.ones(3), past)
