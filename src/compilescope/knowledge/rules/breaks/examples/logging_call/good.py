import logging
import torch

log = logging.getLogger("example")

def f(x):
    y = x + 1
    return y * 2, y[0]

result, first = torch.compile(f, backend="eager")(torch.ones(3))
log.warning("first of y: %s", first)
print(result)
