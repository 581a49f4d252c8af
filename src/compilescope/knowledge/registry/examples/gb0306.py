"""A higher-order operator that Dynamo has no rule for."""

import torch


def f(x):
    sin = torch.ops.aten.sin.default
    return torch.ops.higher_order.with_effects(None, sin, x)  # breaks here


def inputs():
    return (torch.ones(3),)
