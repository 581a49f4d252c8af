# ideal: none
# trap: the log is read by the program itself, so that it cannot be dropped
"""Collects what a layer logs, and decides by it."""

import logging

import torch
from torch import nn


class Collected(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = logging.getLogger("layer")
        self.log.setLevel(logging.INFO)
        self.handler = Collected()
        self.log.addHandler(self.handler)

    def forward(self, x):
        self.log.info("called")
        return x * 2


layer = Layer()
run = torch.compile(layer, backend="eager")
for _ in range(3):
    run(torch.ones(2))
print("calls:", len(layer.handler.lines))
