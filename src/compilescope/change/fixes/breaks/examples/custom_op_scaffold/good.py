import ctypes

import torch

native = ctypes.pythonapi
native.PyNumber_Absolute.restype = ctypes.py_object
native.PyNumber_Absolute.argtypes = [ctypes.py_object]


@torch.library.custom_op("program::PyNumber_Absolute_op", mutates_args=())
def PyNumber_Absolute_op(y: torch.Tensor) -> torch.Tensor:
    return native.PyNumber_Absolute(y)


@PyNumber_Absolute_op.register_fake
def _(y):
    return torch.empty_like(y)


# Never below zero.
def f(x):
    y = x.sin()
    return PyNumber_Absolute_op(y) * 2  # in C


torch.compile(f, backend="eager")(torch.ones(3))
