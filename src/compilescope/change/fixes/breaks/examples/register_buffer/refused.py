#: because: outside of `__init__`
import torch
from torch import nn


class Scaled(nn.Module):
    def keep(self, scale):
        self.scale = nn.Buffer(scale)

    def forward(self, x):
        self.keep(torch.ones(3))
        return x * self.scale


def f(x):
    return Scaled()(x)


torch.compile(f, backend="eager")(torch.ones(3))
