"""Shows two instances of one class that differ in an attribute."""

import torch

#: graphs 2


class Power(torch.nn.Module):
    def __init__(self, exponent):
        super().__init__()
        self.exponent = exponent

    def forward(self, x):  #: recompile 1 "self.exponent" 2 -> 3
        return x**self.exponent


for exponent in (2, 3):
    torch.compile(Power(exponent), backend="eager")(torch.ones(3))
