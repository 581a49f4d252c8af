# ideal: where-for-if
# Gradients are clipped by hand, each divided by the norm of all.
import torch


@torch.compile(backend="eager")
def step(params, grads, max_norm: float = 1.0):
    total = torch.stack([g.norm() for g in grads]).norm()
    if total > max_norm:
        grads = [g * max_norm / total for g in grads]
    return [p - 0.1 * g for p, g in zip(params, grads)]


torch.manual_seed(0)
for scale in (0.01, 3.0):
    grads = [torch.randn(4, 3) * scale, torch.randn(3) * scale]
    params = [torch.randn(4, 3), torch.randn(3)]
    print([round(g.sum().item(), 4) for g in step(params, grads)])
