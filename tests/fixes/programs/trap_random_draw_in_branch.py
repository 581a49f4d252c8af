# ideal: any
# trap: drawing a number that is not used shifts all that are drawn later
import torch


def f(x):
    if x.sum() > 0:
        x = x + torch.rand_like(x)
    return x * 2


g = torch.compile(f, backend="eager")
torch.manual_seed(0)
for k in (-1.0, 1.0, -1.0):
    print(g(torch.full((2,), k)).tolist(), torch.rand(1).item())
