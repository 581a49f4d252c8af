import torch


def f(x, weights):
    out = torch.zeros_like(x)
    for weight in weights.detach().clone().unbind():
        out = (out + x) * weight
    return out


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(2))
