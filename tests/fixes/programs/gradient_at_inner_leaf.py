# ideal: any
"""Which inputs matter: the gradient at a tensor that is made inside."""

import torch


@torch.compile(backend="aot_eager")
def importance(x):
    probe = torch.zeros(3, requires_grad=True)
    loss = ((x + probe) ** 3).sum()
    (slope,) = torch.autograd.grad(loss, probe)
    return slope.abs()


print(importance(torch.tensor([1.0, -2.0, 3.0])).tolist())
