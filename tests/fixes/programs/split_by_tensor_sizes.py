# ideal: capture-scalars
"""Parts of a packed batch, whose sizes come as a tensor."""

import torch


def sums(packed, sizes):
    out = []
    for part in packed.split(sizes.tolist()):
        out.append(part.sum(0))
    return torch.stack(out)


run = torch.compile(sums, backend="eager")
packed = torch.arange(12.0).view(6, 2)
for sizes in ([1, 2, 3], [2, 2, 2], [3, 1, 2]):
    print(run(packed, torch.tensor(sizes)).tolist())
