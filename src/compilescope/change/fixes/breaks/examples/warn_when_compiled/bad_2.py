import functools
import logging
import torch
from torch import nn

logger = logging.getLogger("net")
logger.warning_once = functools.lru_cache(None)(logger.warning)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4

    def forward(self, x):
        if x.shape[0] < self.size:
            logger.warning_once(f"padded from {x.shape[0]} to {self.size}")
        return x + self.size


net = torch.compile(Net(), backend="eager")
net(torch.ones(3))
