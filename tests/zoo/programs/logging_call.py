"""Shows a call of a logger."""

import logging

import torch

#: graphs 2

log = logging.getLogger("zoo")


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    log.info("mean %s", y.shape)  #: break "log.info(" logging.Logger method not supported for non-export cases #: category logging
    return y * 2


f(torch.ones(3))
