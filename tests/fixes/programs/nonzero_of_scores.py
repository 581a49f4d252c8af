# ideal: capture-shapes
"""Picks the boxes whose score is high, and sorts them."""

import torch


@torch.compile(backend="eager")
def select(boxes, scores, threshold: float = 0.5):
    keep = torch.nonzero(scores > threshold).squeeze(1)
    kept = boxes.index_select(0, keep)
    order = scores[keep].argsort(descending=True)
    return kept[order] * 2.0


boxes = torch.arange(12.0).view(4, 3)
print(select(boxes, torch.tensor([0.1, 0.9, 0.7, 0.2])).tolist())
print(select(boxes, torch.tensor([0.6, 0.9, 0.7, 0.2])).tolist())
