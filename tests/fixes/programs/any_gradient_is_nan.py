# ideal: where-for-if
"""A step that is left out where one of the gradients is not finite."""

import torch


@torch.compile(backend="aot_eager")
def update(weight, grads):
    step = sum(g.sum(0) for g in grads)
    if any(g.isnan().any() for g in grads):
        step = torch.zeros_like(step)
    return weight - 0.1 * step


weight = torch.ones(3)
for bad in (0.0, float("nan"), 1.0):
    grads = [torch.ones(2, 3), torch.full((4, 3), bad)]
    print(update(weight, grads).tolist())
