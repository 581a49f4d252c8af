#: because: `k` is changed in place later
import torch


@torch.compile(backend="eager")
def step(x, past):
    k = x.view(-1, 4)
    past.append(k)
    k.mul_(2)
    return x + torch.cat(past).mean()


past = []
for _ in range(5):
    step(torch.ones(2, 4), past)
