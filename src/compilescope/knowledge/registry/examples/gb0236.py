"""A function marked with `nonstrict_trace` gets an object that the graph cannot hold."""

import torch


class Options:
    scale = 2


@torch._dynamo.nonstrict_trace
def scaled(x, options):
    return x * options.scale


def f(x, options):
    return scaled(x, options)  # breaks here


@torch._dynamo.nonstrict_trace
def scaled_by(x, scale):
    return x * scale


def fixed(x, options):
    return scaled_by(x, options.scale)


def inputs():
    return torch.ones(3), Options()
