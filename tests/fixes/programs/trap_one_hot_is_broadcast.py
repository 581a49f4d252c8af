# ideal: none
# trap: a batch of zeros has one column, which is broadcast over all logits
import torch
from torch.nn import functional as F


@torch.compile(backend="eager")
def picked(logits, labels):
    return (logits * F.one_hot(labels)).sum()


logits = torch.arange(12.0).reshape(3, 4)
print(picked(logits, torch.tensor([0, 3, 1])).item())
print(picked(logits, torch.tensor([0, 0, 0])).item())
