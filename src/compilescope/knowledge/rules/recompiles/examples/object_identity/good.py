import enum

import torch

class Mode(enum.Enum):
    ADD = 1
    SCALE = 2

@torch.compile(backend="eager")
def add(x):
    return x + 1

@torch.compile(backend="eager")
def scale(x):
    return x * 2

ways = {Mode.ADD: add, Mode.SCALE: scale}
for mode in Mode:
    print(ways[mode](torch.ones(3)))
