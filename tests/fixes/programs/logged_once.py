# ideal: tensor-for-number
"""A line that is logged once per process, in a module whose outputs require a gradient."""

import functools
import logging

import torch
from torch import nn

log = logging.getLogger("scaled")


@functools.lru_cache(None)
def say_once(text):
    log.warning(text)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        h = self.fc(x)
        h = h / h.abs().max().item()
        say_once("slow path")
        return torch.tanh(h)


torch.manual_seed(0)
scaled = torch.compile(Scaled(), backend="eager")
for _ in range(2):
    print(scaled(torch.ones(2, 4)).sum().item() > -9)
