"""A module that is kept in the class of an autograd function is called."""

import torch


class Double(torch.autograd.Function):
    activation = torch.nn.ReLU()

    @staticmethod
    def forward(ctx, x):
        return x * 2


def f(x):
    return Double.activation(x)  # breaks here


activation = torch.nn.ReLU()


def fixed(x):
    return activation(x)


def inputs():
    return (torch.ones(3),)
