# ideal: none
# The gradients have a history: scaled in place under a branch, they are differentiated once more.
import torch


def clip(params, limit: float):
    total = torch.sqrt(sum((p.grad**2).sum() for p in params))
    if total > limit:
        for p in params:
            p.grad.mul_(limit / (total - 1.0))
    return total


run = torch.compile(clip, backend="eager")
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(3))
for scale in (0.1, 2.0):
    weight.grad = None
    loss = ((weight * scale) ** 3).sum()
    (weight.grad,) = torch.autograd.grad(loss, [weight], create_graph=True)
    norm = run([weight], 1.0)
    print(round(norm.item(), 4), round(weight.grad.sum().item(), 4))
