import threading

import torch

lock = threading.Lock()


def _f_result(x):
    y = x + 1
    return y * 2


# left to Python, but not what it calls; no public decorator does this
@torch._dynamo.decorators.skip
def f(x):
    with lock:
        return _f_result(x)


torch.compile(f, backend="eager")(torch.ones(3))
