#: because: `x \+= 1` comes first, and may change a tensor of the list
import torch


@torch.compile(backend="eager")
def f(x, past):
    x += 1
    return torch.stack(past).sum() + x.sum()


past = []
for _ in range(4):
    x = torch.ones(3)
    past.append(x)
    f(x, past)
