# ideal: where-for-if
# Gradients are scaled down where they are too long, as training loops do by hand.
import torch
from torch import nn


@torch.no_grad()
def clip(grad, limit):
    norm = grad.norm()
    if norm > limit:
        grad = grad * (limit / (norm + 1e-6))
    return grad * 1.0


model = nn.Linear(4, 2)
with torch.no_grad():
    for p in model.parameters():
        p.fill_(0.5)
clip_fast = torch.compile(clip, backend="eager")
for scale in (0.1, 10.0):
    model.zero_grad()
    (model(torch.ones(3, 4)) * scale).sum().backward()
    print([round(clip_fast(p.grad, 2.0).sum().item(), 4) for p in model.parameters()])
