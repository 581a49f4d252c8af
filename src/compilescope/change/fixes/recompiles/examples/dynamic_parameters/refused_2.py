#: because: sizes 0 and 1 are compiled separately
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(0, 4))

    def forward(self, x):
        return (self.rows @ x).sum()


model = Memory()
compiled = torch.compile(model, backend="eager")
for rows in (1, 5, 7):
    model.rows = torch.ones(rows, 4)
    compiled(torch.ones(4))
