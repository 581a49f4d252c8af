"""Shows float, int and bool of a tensor, each in a function of its own."""

import torch

#: graphs 6


@torch.compile(backend="eager")
def as_float(x):
    return x * float(x.sum())  #: break "float(" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction


@torch.compile(backend="eager")
def as_int(x):
    return x * int(x.sum())  #: break "int(" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction


@torch.compile(backend="eager")
def as_bool(x):
    positive = bool(x.sum() > 0)  #: break "bool(" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    return x * 2 if positive else x


as_float(torch.ones(3))
as_int(torch.ones(3))
as_bool(torch.ones(3))
