# ideal: print-in-graph
"""A layer that logs its activations, as many research repositories do."""

import logging
import sys

import torch
import torch.nn as nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s %(message)s")
logger = logging.getLogger("blocks")


class Block(nn.Module):
    def __init__(self, width: int, index: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.index = index

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.linear(x))
        logger.info("block %d: mean %.4f, shape %s", self.index, y.mean(), tuple(y.shape))
        return x + y


torch.manual_seed(0)
model = nn.Sequential(Block(4, 0), Block(4, 1))
model.compile(backend="eager")
with torch.no_grad():
    for _ in range(2):
        print(round(model(torch.ones(2, 4)).sum().item(), 4))
