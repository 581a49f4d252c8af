import logging

import torch

log = logging.getLogger(__name__)


@torch.compile(backend="eager")
def loss_of(x):
    loss = (x * 2).sum()
    if torch.isnan(loss):
        log.warning("loss is nan")
    return loss


loss_of(torch.ones(3))
