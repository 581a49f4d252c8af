#: because: the function does more with `seen` than add to it
import torch

seen = []


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    seen.append(y)
    return torch.stack(seen).mean(0)


for _ in range(3):
    f(torch.ones(3))
