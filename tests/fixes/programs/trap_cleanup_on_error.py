# ideal: any
# trap: the cleanup runs also when the work fails, and the error passes through it
import gc

import torch


def f(x, size):
    try:
        y = x.reshape(size)
        z = y * 2
    finally:
        gc.collect()
    return z


run = torch.compile(f, backend="eager")
print(run(torch.ones(4), (2, 2)).tolist())
try:
    run(torch.ones(4), (3, 3))
except RuntimeError as error:
    print(type(error).__name__)
