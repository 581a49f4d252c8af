# ideal: none
# trap: without a mask another mean is computed, and no mask stands for it exactly
import torch


@torch.compile(backend="eager")
def mean(x, mask=None):
    if mask is None:
        return x.mean()
    return (x * mask).sum() / mask.sum()


for mask in (None, torch.tensor([1.0, 0.0, 1.0]), None):
    print(f"{mean(torch.arange(3.0), mask).item():.4f}")
