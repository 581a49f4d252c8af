import torch


def f(x):
    w = torch.randn(
        x.shape[0],
        requires_grad=True,
        dtype=torch.float32,
    )
    return (x + w).sum().detach()


torch.compile(f, backend="eager")(torch.ones(3))
