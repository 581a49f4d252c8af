# ideal: where-for-return
# Two numbers with names, whose difference is tested in Python's double precision.
import torch


@torch.no_grad()
def rescaled(x):
    low = x.min().item()
    high = x.max().item()
    if high - low < 1e-6:
        return torch.zeros_like(x)
    return (x - low) / (high - low)


run = torch.compile(rescaled, backend="eager")
print(run(torch.tensor([1.0, 2.0, 4.0])), run(torch.ones(3)))
