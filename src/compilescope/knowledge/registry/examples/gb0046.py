"""`torch.is_inference_mode_enabled()` asks for a state that tracing takes away."""

import torch


def f(x):
    if torch.is_inference_mode_enabled():  # breaks here
        return x + 1
    return x - 1


def fixed(x):
    return x - 1


def inputs():
    return (torch.ones(3),)
