# ideal: none
# trap: the caller takes the first item of the same iterator, which a list is not
import torch


def inputs(n):
    base = torch.arange(3.0) + n
    return base, iter([base, base * 2]), zip((1, 2), (base, base + 1))


@torch.compile(backend="eager")
def mix(base, rows, pairs):
    for n, row in pairs:
        base = base + n * row
    return base


for n in range(2):
    print(mix(*inputs(n)).sum().item())
print(next(inputs(5)[2])[0])
