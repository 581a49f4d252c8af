import torch


def f(x):
    w = torch.randn(
        x.shape[0],
        dtype=torch.float32,
    ).requires_grad_()
    return (x + w).sum().detach()


torch.compile(f, backend="eager")(torch.ones(3))
