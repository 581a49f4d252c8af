# ideal: none
# sound: dynamic-sources dynamic-true unspecialised-ints
# trap: the number changes in the call before it is read: read first, it would be the last one
"""A module that moves its clock on and then reads it."""

import math

import torch
import torch.nn as nn


class Clock:
    def __init__(self):
        self.hour = 0

    def tick(self):
        self.hour = (self.hour + 1) % 24


class Seasonal(nn.Module):
    def __init__(self, clock, width=6):
        super().__init__()
        self.clock = clock
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        self.clock.tick()
        season = math.sin(2 * math.pi * self.clock.hour / 24)
        return torch.tanh(self.inner(x)) * (1 + season)


class Forecaster:
    def __init__(self):
        self.clock = Clock()
        self.model = Seasonal(self.clock)
        self.model.compile(backend="eager")

    @torch.no_grad()
    def predict(self, x):
        return self.model(x).mean().item()


def main():
    torch.manual_seed(0)
    forecaster = Forecaster()
    for day in range(4):
        x = torch.randn(5, 6)
        print(f"{day}: {forecaster.predict(x):.4f} at {forecaster.clock.hour}")


main()
