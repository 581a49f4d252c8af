"""torch.cond for the branch, a parameter-free tensor for the counter."""

import torch


def shrink(y, largest):
    return y / largest


def keep(y, largest):
    return y.clone()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("step", torch.tensor(0, dtype=torch.int64))

    def forward(self, x):
        self.step.add_(1)
        y = self.linear(x)
        largest = y.abs().max()
        return torch.cond(largest > 10, shrink, keep, (y, largest)) / self.step
