import itertools

import torch

@torch.compile(backend="eager")
def f(x, numbers):
    return x * next(numbers)

numbers = itertools.count()
for _ in range(2):
    print(f(torch.ones(3), numbers))
