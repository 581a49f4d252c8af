#: because: it had two lengths only
import torch


@torch.compile(backend="eager")
def step(x, past):
    past.append(x.sin())
    return x + torch.cat(past).mean()


past = []
for _ in range(2):
    step(torch.ones(2, 4), past)
