# mypy: ignore-errors
"""Runs a captured `torch.autograd.Function` from its two graphs, forward and backward.

Dynamo writes `autograd_function_apply` into its graphs but cannot trace it again (torch 2.13), so a
script calls this instead.
"""

import torch


class GraphFunction(torch.autograd.Function):
    """A function with a gradient of its own, whose two passes are graphs."""

    @staticmethod
    def forward(ctx, forward, backward, *args):
        results, ctx.kept = forward(*args)
        ctx.gradient = backward
        return results

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, *ctx.gradient(*gradients, *ctx.kept))


def apply_function(forward, backward, *args, **_):
    return GraphFunction.apply(forward, backward, *args)
