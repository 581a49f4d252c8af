# ideal: converted-argument
import torch


@torch.compile(backend="eager")
def pyramid(features):
    total = features[0]
    for each in features[1:]:
        total = total + each.mean()
    return total


def make(n):
    return [torch.ones(3) * k for k in range(1, n + 1)]


print(pyramid(make(3)))
print(pyramid(tuple(make(3))))
