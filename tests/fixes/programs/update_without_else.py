# ideal: where-for-if
# An update that is made or not, in the style of most training code.
import torch


def damp(x, limit: float = 1.0):
    peak = x.abs().max()
    if peak > limit:
        x = x - 0.5 * x.sign()
    return x * 2


fast = torch.compile(damp, backend="eager")
print(fast(torch.tensor([0.25, -0.5])))
print(fast(torch.tensor([2.0, -3.0])))
