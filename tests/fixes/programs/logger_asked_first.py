# ideal: print-while-eager
# rule: print-while-eager
"""A logger is asked whether it would log at all."""

import logging

import torch

logger = logging.getLogger("model")


@torch.compile(backend="eager")
def norm(x):
    y = x - x.mean()
    if logger.isEnabledFor(logging.DEBUG):
        spread = y.abs().max()
        logger.debug("spread %s", spread)
    return y / y.std()


for n in range(2):
    print(norm(torch.arange(3.0) + n).tolist())
