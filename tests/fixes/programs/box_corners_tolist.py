# ideal: unbind-for-tolist
"""The corners of a box, taken apart as numbers."""

import torch


def shift(points, box):
    left, top, right, bottom = (box * 0.5).tolist()
    xs = points[:, 0] * (right - left) + left
    ys = points[:, 1] * (bottom - top) + top
    return torch.stack([xs, ys], 1)


go = torch.compile(shift, backend="eager")
points = torch.tensor([[0.0, 0.5], [1.0, 0.25]])
for corner in (8.0, 16.0):
    print(go(points, torch.tensor([2.0, 4.0, corner, 12.0])).tolist())
