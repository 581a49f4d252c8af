# ideal: mark-dynamic
"""A cache that is None first and then a tensor: grows with each call."""

import torch
from torch import nn


class Summed(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, x, past=None):
        k = self.lin(x)
        if past is not None:
            k = torch.cat((past, k), 1)
        y = x + torch.softmax(x @ k.transpose(1, 2), -1) @ k
        return y, k


@torch.no_grad()
def main():
    torch.manual_seed(0)
    net = Summed().eval()
    step = torch.compile(net, backend="eager", dynamic=False)
    for _ in range(2):
        cache = None
        x = torch.randn(2, 4, 16)
        for i in range(6):
            y, cache = step(x, cache)
            x = torch.tanh(y[:, -1:])
        print(f"{x.sum().item():.4f}", cache.shape)


main()
