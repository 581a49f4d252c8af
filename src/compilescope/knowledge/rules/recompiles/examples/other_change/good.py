import itertools

import torch

@torch.compile(backend="eager")
def f(x, number):
    return x * number

numbers = itertools.count()
for _ in range(2):
    print(f(torch.ones(3), torch.tensor(next(numbers))))
