"""Shows a lock, a context manager that Dynamo does not support."""

import threading

import torch

#: graphs 0

lock = threading.Lock()


@torch.compile(backend="eager")  #: eager Unsupported context manager
def f(x):
    y = x + 1
    with lock:  #: break "with lock" Unsupported context manager #: category context-manager
        y = y * 2
    return y.relu()


f(torch.ones(3))
