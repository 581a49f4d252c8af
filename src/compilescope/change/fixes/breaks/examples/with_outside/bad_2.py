import threading

import torch

lock = threading.Lock()


def f(x):
    with lock:
        y = x + 1
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
