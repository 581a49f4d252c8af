# ideal: list-for-iterator
"""Levels of a pyramid, made by a generator, are weighed with numbers from another one."""

import torch
from torch import nn


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def levels(self, x):
        for layer in self.layers:
            x = layer(x).relu()
            yield x

    def forward(self, x, weights):
        total = x.sum()
        for level, weight in zip(self.levels(x), weights):
            total = total + weight * level.mean()
        return total


def main():
    torch.manual_seed(0)
    model = torch.compile(Pyramid(), backend="eager")
    for step in range(3):
        weights = (1.0 / (place + 1) for place in range(3))
        print(step, model(torch.randn(2, 4), weights).item())


main()
