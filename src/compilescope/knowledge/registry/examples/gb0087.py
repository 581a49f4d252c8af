"""The fake kernel of a custom operator is not written yet."""

import torch


@torch.library.custom_op("compilescope_gb0087::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@double.register_fake
def fake_double(x):
    raise NotImplementedError("later")


def f(x):
    return double(x) + 1  # breaks here


@torch.library.custom_op("compilescope_gb0087::double_known", mutates_args=())
def double_known(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@double_known.register_fake
def fake_double_known(x):
    return torch.empty_like(x)


def fixed(x):
    return double_known(x) + 1


def inputs():
    return (torch.ones(3),)
