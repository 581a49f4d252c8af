# ideal: none
# trap: a tuple that becomes a list only if it is clipped
import torch


@torch.compile(backend="eager")
def clip(grads, max_norm: float = 1.0):
    total = torch.stack([g.norm() for g in grads]).norm()
    if total > max_norm:
        grads = [g * 0.5 for g in grads]
    return type(grads) is tuple, [g + 1 for g in grads]


torch.manual_seed(0)
for scale in (0.01, 3.0):
    grads = torch.randn(4, 3) * scale, torch.randn(3) * scale
    print([round(g.sum().item(), 4) for g in clip(grads)[1]])
