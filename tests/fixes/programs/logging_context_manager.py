# ideal: print-while-eager
# rule: print-while-eager
# A context manager logs when it is entered and when it is left.
import contextlib
import logging

import torch
from torch import nn

log = logging.getLogger("net")


@contextlib.contextmanager
def section(name):
    log.info("enter %s", name)
    try:
        yield
    finally:
        log.info("leave %s", name)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with section("linear"):
            x = self.linear(x).relu()
        return x.sum(-1)


torch.manual_seed(0)
net = torch.compile(Net(), backend="eager")
for _ in range(2):
    print(f"{net(torch.randn(2, 4)).sum().item():.4f}")
