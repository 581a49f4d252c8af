# ideal: where-for-if
# The norm is a Python number with a name, and Python divides by it; it is never below zero.
import torch


@torch.no_grad()
def clip(grad, limit: float):
    norm = grad.norm().item()
    if norm > limit:
        grad = grad * (limit / (norm + 1e-6))
    return grad * 1.0


run = torch.compile(clip, backend="eager")
for scale in (0.1, 10.0):
    print(run(torch.arange(4.0) * scale, 2.0))
