"""Shows a break in a train step compiled with aot_eager."""

import torch

#: graphs 2

torch.manual_seed(0)
weight = torch.randn(3, requires_grad=True)


@torch.compile(backend="aot_eager")
def loss_of(x):
    y = (x * weight).sum()
    print("between")  #: break "print(" Failed to trace builtin operator #: category logging
    return y.square()


for _ in range(2):
    loss_of(torch.ones(3)).backward()
