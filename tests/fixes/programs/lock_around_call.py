# ideal: with-outside
"""Several threads may call the model: one at a time."""

import threading

import torch

guard = threading.RLock()


def scaled(x):
    with guard:
        y = x.exp()
    return y / y.sum()


serve = torch.compile(scaled, backend="eager")
print([round(v, 4) for v in serve(torch.arange(4.0)).tolist()])
