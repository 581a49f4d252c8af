# ideal: outside-of-compiled
"""Traps: an error that the caller catches, and a check whose message has the value."""

import torch
from torch import nn


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.emb = nn.Embedding(10, 4)

    def forward(self, ids):
        if ids.max() >= 10:
            raise ValueError(f"id {ids.max().item()} is out of range")
        if (ids < 0).any():
            raise IndexError("negative id")
        return self.emb(ids).sum(0)


net = torch.compile(Checked(), backend="eager")
for ids in ([1, 2], [3, 11], [4, 5], [-1, 2]):
    try:
        print(round(net(torch.tensor(ids)).sum().item(), 4))
    except (ValueError, IndexError) as error:
        print(type(error).__name__, str(error)[:30])
