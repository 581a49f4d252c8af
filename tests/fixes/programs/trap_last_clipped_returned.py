# ideal: none
# trap: the variable of the loop is returned, and is another tensor where nothing is clipped
import torch


def clip(grads, g, limit: float):
    norm = torch.stack([each.norm() for each in grads]).norm()
    if norm > limit:
        for g in grads:
            g.mul_(limit / (norm + 1e-6))
    return g * 2


run = torch.compile(clip, backend="eager")
torch.manual_seed(0)
for scale in (0.01, 3.0):
    grads = [torch.randn(3) * scale, torch.randn(3) * scale]
    print(round(run(grads, torch.ones(3), 1.0).sum().item(), 4))
