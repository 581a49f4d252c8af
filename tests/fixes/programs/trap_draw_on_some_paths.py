# ideal: none
# trap: the second draw is only made where the first says so; drawn ahead, it would shift the stream
import random

import torch


def flipped(x):
    if random.random() < 0.5 and random.random() < 0.5:
        return x.flip(-1)
    return x * 2


random.seed(1)
run = torch.compile(flipped, backend="eager")
for _ in range(5):
    print(run(torch.arange(3.0)).tolist(), f"{random.random():.4f}")
