# ideal: threshold-first, print-in-graph
# The warning's fix lets tracing reach a branch inside the loop, for which the whole frame would be
# eager: it holds once the branch has its own fix.
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(8, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.layer_drop = 0.0

    def forward(self, x, cache=None):
        x = self.scale(x).relu()
        if cache is None:
            logger.warning("A cache is made. Pass one.")
            cache = []
        for layer in self.layers:
            if self.training:
                chance = torch.rand([])
                if chance < self.layer_drop:
                    continue
            x = layer(x).relu()
        return x


torch.manual_seed(0)
model = torch.compile(Decoder(), backend="eager")
for _ in range(3):
    print(model(torch.ones(2, 8)).sum().item())
