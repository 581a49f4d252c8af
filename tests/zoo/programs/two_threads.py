"""Shows two threads that each compile a function of their own at the same time."""

import threading

import torch

#: graphs 4


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    print("f")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 2


@torch.compile(backend="eager")
def g(x):
    y = x - 1
    scale = y.sum().item()  #: break "y.sum().item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction
    return y * scale


threads = [threading.Thread(target=target, args=(torch.ones(3),)) for target in (f, g)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
