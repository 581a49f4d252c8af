#: because: first call only
import threading

import torch

lock = threading.Lock()


@torch.compile(backend="eager")
def f(x):
    with lock:
        x = x * 2
    return x + 1


for _ in range(3):
    f(torch.ones(3))
