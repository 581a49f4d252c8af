"""A module made by `torch.jit.script` is called; Dynamo does not look into it."""

import torch


class Scale(torch.nn.Module):
    def forward(self, x):
        return x * 2


scripted = torch.jit.script(Scale())
plain = Scale()


def f(x):
    return scripted(x) + 1  # breaks here


def fixed(x):
    return plain(x) + 1


def inputs():
    return (torch.ones(3),)
