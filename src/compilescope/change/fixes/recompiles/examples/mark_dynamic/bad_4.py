#: note: a cache that grows: two tensors for each layer, and none in the first call
import torch


@torch.compile(backend="eager")
def attend(x, cache):
    if cache:
        x = torch.cat([cache[0][0], x]) + torch.cat([cache[0][1], x])
    return x.sum(), [(x, x + 1)]


for _ in range(2):
    cache = []
    for _ in range(4):
        total, cache = attend(torch.ones(2, 4), cache)
