# ideal: report-in-graph
# A number gets a name, decides whether something is logged, and is in the message.
import logging

import torch

log = logging.getLogger("net")


@torch.compile(backend="eager")
def check(x):
    peak = x.abs().max().item()
    if peak > 100:
        log.warning("large activation %.1f", peak)
    return x.tanh()


for value in (1.0, 200.0):
    print(check(torch.full((3,), value)).sum().item())
