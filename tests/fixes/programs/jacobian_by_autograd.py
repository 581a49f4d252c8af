# ideal: functional-for-autograd
"""The divergence of a vector field by its whole Jacobian."""

import torch
from torch.autograd import functional


def field(p):
    return torch.stack([p[0] ** 2 * p[1], p[0] + p[1] ** 3])


def divergence(p):
    shifted = p + 0.5
    return functional.jacobian(field, shifted).trace()


print(torch.compile(divergence, backend="eager")(torch.tensor([1.0, 2.0])).item())
