# ideal: where-for-if
# The gradients of a list are scaled in place where their norm is too large.
import torch


def clip(grads, limit: float):
    norm = torch.stack([g.norm() for g in grads]).norm()
    if norm > limit:
        for g in grads:
            g.mul_(limit / (norm + 1e-6))
    return norm


run = torch.compile(clip, backend="eager")
torch.manual_seed(0)
for scale in (0.01, 3.0):
    grads = [torch.randn(4, 3) * scale, torch.randn(3) * scale]
    print(round(run(grads, 1.0).item(), 4), [round(g.sum().item(), 4) for g in grads])
