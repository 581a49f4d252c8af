import logging

import torch

log = logging.getLogger("train")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.calls = 0

    @torch.compiler.disable
    def report(self, y):
        if self.calls % 2 == 0:
            log.info("mean %s", y.mean().item())

    def _forward_result(self, x):
        y = self.layer(x).relu()
        return y

    @torch.compiler.disable(recursive=False)
    def forward(self, x):
        y = self._forward_result(x)
        self.report(y)
        return y


net = torch.compile(Net(), backend="eager")
for _ in range(3):
    net(torch.ones(2, 3))
