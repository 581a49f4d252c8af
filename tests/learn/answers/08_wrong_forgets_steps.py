"""One graph, but it no longer counts."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        largest = y.abs().max()
        return torch.where(largest > 10, y / largest, y)
