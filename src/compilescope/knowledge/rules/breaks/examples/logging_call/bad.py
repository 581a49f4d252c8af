import logging
import torch

log = logging.getLogger("example")

def f(x):
    y = x + 1
    log.warning("first of y: %s", y[0])
    return y * 2

print(torch.compile(f, backend="eager")(torch.ones(3)))
