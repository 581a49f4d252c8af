# ideal: none
# trap: the helper's number is how often a loop runs, which a tensor cannot be
import torch


def positive(x):
    return int((x > 0).sum())


@torch.compile(backend="eager")
def f(x):
    for _ in range(positive(x)):
        x = x * 2
    return x


print(f(torch.tensor([1.0, -1.0, 1.0])).tolist())
print(f(torch.tensor([1.0, -1.0, -1.0])).tolist())
