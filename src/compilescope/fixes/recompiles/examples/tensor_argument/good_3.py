import torch


def blend(x, noise, strength):
    return x.sub(noise * strength).clamp(min=strength / 2)


@torch.compile(backend="eager", dynamic=False)
def update(weights, moments, lr):
    torch._foreach_add_(weights, torch._foreach_mul(moments, -lr))
    return blend(weights[0], moments[0], 2 * lr)


weights, moments = [torch.ones(3)], [torch.ones(3)]
blend(weights[0], moments[0], 0.5)
for step in range(3):
    update(weights, moments, lr=torch.tensor(0.1 / (step + 1), dtype=torch.float64))
