import logging

import torch

logger = logging.getLogger(__name__)


def f(x):
    y = x + 1
    if logger.isEnabledFor(logging.DEBUG):  # it is not cheap
        top = y.max()
        logger.debug("top %s", top)
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
