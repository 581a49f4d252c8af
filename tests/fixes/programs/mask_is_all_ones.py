# ideal: where-for-if, print-after-graph
"""A mask that is often all ones: read at the entrance of forward, used below."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.proj = nn.Linear(6, 6)

    def forward(self, x, mask):
        full = bool(mask.all())
        h = self.proj(x)
        scores = h @ h.transpose(-1, -2)
        if not full:
            scores = scores.masked_fill(~mask[:, None, :], -1e9)
        h = scores.softmax(-1) @ h
        if not full:
            h = h * mask.unsqueeze(-1)
        print("debug: hidden", tuple(h.shape), h.abs().max() > 100)
        return h


net = torch.compile(Encoder(), backend="eager")
x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
for k in (5, 3, 5, 2):
    mask = (torch.arange(5) < k).expand(2, 5)
    print(round(net(x, mask).sum().item(), 4))
