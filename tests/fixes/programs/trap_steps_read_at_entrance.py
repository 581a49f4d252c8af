# ideal: none
# trap: handed in as a number, each length would have a graph of its own
"""How often a loop goes round is read from an argument."""

import torch


@torch.compile(backend="eager")
def smooth(x, lengths):
    steps = int(lengths.max())
    for _ in range(steps):
        x = x * 0.5 + x.mean()
    return x


for longest in (2, 3, 2):
    print(smooth(torch.arange(3.0), torch.tensor([1, longest])).tolist())
