# ideal: print-while-eager
# rule: print-while-eager
"""The logger belongs to the object, and nobody reads it."""

import logging

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.log = logging.getLogger(type(self).__name__)

    def forward(self, x):
        out = self.fc(x).sigmoid()
        # Silent unless somebody asks for it.
        self.log.debug("gate opens %s", out)
        return x * out


torch.manual_seed(0)
gate = torch.compile(Gate(), backend="eager")
print(gate(torch.ones(1, 3)).sum().item() > 0, gate(torch.zeros(1, 3)).tolist())
