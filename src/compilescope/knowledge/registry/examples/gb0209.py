"""`_unsafe_preserve_version_counter` is returned from the compiled function."""

import torch


def f(x):
    return x + 1, torch.autograd._unsafe_preserve_version_counter(x)  # breaks here


def inputs():
    return (torch.ones(3),)
