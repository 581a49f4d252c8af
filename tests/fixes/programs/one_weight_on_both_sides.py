# ideal: cond-for-if
"""Both sides use the weight; `torch.where` would let a NaN of the other side into its gradient."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        if x.mean() > 0:
            y = x * self.weight
        else:
            y = x - self.weight
        return y.sum()


gate = Gate()
run = torch.compile(gate, backend="eager")
for sign in (1.0, -1.0):
    gate.weight.grad = None
    run(torch.full((3,), sign)).backward()
    print(gate.weight.grad.tolist())
