"""The branch is gone, but the counter is still an int."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.step = 0

    def forward(self, x):
        self.step += 1
        y = self.linear(x)
        largest = y.abs().max()
        y = torch.where(largest > 10, y / largest, y)
        return y / self.step
