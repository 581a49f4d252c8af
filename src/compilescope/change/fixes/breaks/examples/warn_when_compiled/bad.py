import warnings
import torch


def f(x, scale=2):
    y = x + 1
    warnings.warn(f"scale {scale} is old")  # since 2020
    return y * scale


torch.compile(f, backend="eager")(torch.ones(3))
