# ideal: list-for-iterator
# Numbers from an iterator that a function of inputs makes.
import torch

torch.manual_seed(0)


def batches():
    for i in range(3):
        yield torch.full((2, 3), float(i))


def inputs():
    return (torch.ones(2, 3), iter([1.0, 2.0, 3.0]))


def scale(x, factors):
    total = x
    for f in factors:
        total = total * f
    return total


c = torch.compile(scale, backend="eager")
for _ in range(3):
    print(c(*inputs()).sum().item())
