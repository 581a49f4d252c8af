#: because: Dynamo does not trace `time.monotonic_ns
import time

import torch

stamps = []


@torch.compile(backend="eager")
def f(x):
    y = x.cos()
    stamps.append(time.monotonic_ns())
    return y * 2


for _ in range(3):
    f(torch.ones(3))
