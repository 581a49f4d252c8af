import enum

import torch

class Mode(enum.Enum):
    ADD = 1
    SCALE = 2

@torch.compile(backend="eager")
def f(x, mode):
    return x + 1 if mode is Mode.ADD else x * 2

for mode in Mode:
    print(f(torch.ones(3), mode))
