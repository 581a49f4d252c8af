import torch


def blend(x, noise, strength):
    y = x.sub(noise * strength)
    return y.clamp(min=torch.as_tensor(strength / 2).to(y.device))


@torch.compile(backend="eager", dynamic=False)
def update(weights, moments, lr):
    torch._foreach_add_(weights, torch._foreach_mul(moments, -lr))
    return blend(weights[0], moments[0], 2 * lr)


weights, moments = [torch.ones(3)], [torch.ones(3)]
blend(weights[0], moments[0], 0.5)
for step in range(3):
    update(weights, moments, lr=torch.tensor(0.1 / (step + 1), dtype=torch.float64))
