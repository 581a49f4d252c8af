"""The method is wrapped in `torch.compiler.disable`: compiled code may call it, never hold it."""

import torch


class Scale(torch.nn.Module):
    @torch.compiler.disable
    def forward(self, x):
        return x * 2


scale = Scale()


def f(x):
    return scale(x) + 1  # breaks here


def fixed(x):
    return x * 2 + 1


def inputs():
    return (torch.ones(3),)
