import warnings
import torch


@torch.compiler.assume_constant_result
def warn_in_f(scale):
    warnings.warn(f"scale {scale} is old")


def f(x, scale=2):
    y = x + 1
    warn_in_f(scale)  # since 2020
    return y * scale


torch.compile(f, backend="eager")(torch.ones(3))
