#: because: no cached property
import threading

import torch


class Counter:
    lock = threading.Lock()


counter = Counter()


def f(x):
    with counter.lock:
        return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
