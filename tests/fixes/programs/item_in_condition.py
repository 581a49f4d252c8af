# ideal: where-for-if
# `.item()` in the test.
import torch


def gain(x):
    if (x > 0).float().mean().item() > 0.6:
        x = x - x.mean()
    return x * 3


f = torch.compile(gain, backend="eager")
print(f(torch.tensor([1.0, 2.0, -3.0])), f(torch.tensor([1.0, -2.0, -3.0])))
