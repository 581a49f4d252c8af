#: because: `self.log` is not a tensor
import logging
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log = logging.getLogger("net")

    def forward(self, x):
        y = x + 1
        self.log.info("mean %s", y)
        return y * 2


torch.compile(Net(), backend="eager")(torch.ones(3))
