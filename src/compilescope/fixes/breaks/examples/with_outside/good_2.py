import threading

import torch

lock = threading.Lock()


def _f_compiled(x):
    y = x + 1
    return y * 2


@torch._dynamo.decorators.skip
def f(x):
    with lock:
        return _f_compiled(x)


torch.compile(f, backend="eager")(torch.ones(3))
