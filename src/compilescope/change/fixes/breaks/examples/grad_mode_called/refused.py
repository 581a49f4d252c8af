#: because: not a torch grad mode
import threading

import torch

lock = threading.Lock()


def f(x):
    with lock:
        return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
