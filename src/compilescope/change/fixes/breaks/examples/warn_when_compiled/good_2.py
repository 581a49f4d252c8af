import functools
import logging
import torch
from torch import nn

logger = logging.getLogger("net")
logger.warning_once = functools.lru_cache(None)(logger.warning)


@torch.compiler.assume_constant_result
def warn_in_net_forward(x_shape_0, self_size):
    logger.warning_once(f"padded from {x_shape_0} to {self_size}")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4

    def forward(self, x):
        if x.shape[0] < self.size:
            warn_in_net_forward(x.shape[0], self.size)
        return x + self.size


net = torch.compile(Net(), backend="eager")
net(torch.ones(3))
