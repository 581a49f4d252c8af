# ideal: none
# trap: what the helper adds is read in the same step
"""The helper's list is read inside of the step."""

import torch


class Window:
    def __init__(self):
        self.values = []

    def push(self, v):
        self.values.append(v)

    def mean(self):
        return torch.stack(self.values[-3:]).mean()


window = Window()


@torch.compile(backend="eager")
def step(x):
    window.push(x.sum())
    return x - window.mean()


for n in range(5):
    print(step(torch.full((2,), float(n))))
