# ideal: converted-after
"""A segmentation task that keeps a score of each batch in the middle of its forward."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def overlap(p, mask):
    return (p * mask).sum((1, 2))


def dice(logits, mask, eps=1e-6):
    p = (logits > 0).float()
    inter = overlap(p, mask)
    return ((2 * inter + eps) / (p.sum((1, 2)) + mask.sum((1, 2)) + eps)).mean()


class Task(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
        self.meter = {"dice": []}

    def forward(self, image, mask):
        logits = self.net(image)
        entropy = F.binary_cross_entropy_with_logits(logits, mask)
        score = dice(logits.detach(), mask).item()
        self.meter["dice"].append(score)
        shared = (logits.sigmoid() * mask).sum()
        soft = 1 - (2 * shared + 1) / (logits.sigmoid().sum() + mask.sum() + 1)
        return entropy + soft

    def pop(self, key):
        values, self.meter[key] = self.meter[key], []
        return sum(values) / len(values)


def main():
    torch.manual_seed(0)
    raw = Task()
    task = torch.compile(raw, backend="aot_eager")
    optimizer = torch.optim.SGD(raw.parameters(), lr=0.1)
    for epoch in range(2):
        for _ in range(3):
            image = torch.randn(4, 6, 6)
            loss = task(image, (image > 0.3).float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{epoch} loss {loss.item():.4f} dice {raw.pop('dice'):.4f}")


main()
