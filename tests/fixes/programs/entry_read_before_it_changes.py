# ideal: where-for-if
# The number is read, then the tensor changes: what is kept of it must be a copy.
import torch


@torch.no_grad()
def shifted(x):
    y = x * 2
    first = y[0].item()
    y.add_(10)
    if first > 3:
        y = y * first
    return y


run = torch.compile(shifted, backend="eager")
print(run(torch.tensor([1.0, 2.0])), run(torch.tensor([2.0, 2.0])))
