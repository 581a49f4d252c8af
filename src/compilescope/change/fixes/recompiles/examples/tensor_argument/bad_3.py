#: note: A helper that is also called with plain numbers, and an operator for lists.
import torch


def blend(x, noise, strength):
    y = x.sub(noise, alpha=strength)
    return y.clamp(min=strength / 2)


@torch.compile(backend="eager", dynamic=False)
def update(weights, moments, lr):
    torch._foreach_add_(weights, moments, alpha=-lr)
    return blend(weights[0], moments[0], 2 * lr)


weights, moments = [torch.ones(3)], [torch.ones(3)]
blend(weights[0], moments[0], 0.5)
for step in range(3):
    update(weights, moments, lr=0.1 / (step + 1))
