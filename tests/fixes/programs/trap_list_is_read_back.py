# ideal: none
# trap: the list that grows is also what the function computes with
import torch


@torch.compile(backend="eager")
def f(x, cache):
    y = x.sin()
    cache.append(y)
    return torch.stack(cache).mean(0)


cache = []
for n in range(4):
    print(f(torch.full((2,), float(n)), cache).tolist(), len(cache))
