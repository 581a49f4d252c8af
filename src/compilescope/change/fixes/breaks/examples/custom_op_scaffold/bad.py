import ctypes

import torch

native = ctypes.pythonapi
native.PyNumber_Absolute.restype = ctypes.py_object
native.PyNumber_Absolute.argtypes = [ctypes.py_object]


# Never below zero.
def f(x):
    y = x.sin()
    return native.PyNumber_Absolute(y) * 2  # in C


torch.compile(f, backend="eager")(torch.ones(3))
