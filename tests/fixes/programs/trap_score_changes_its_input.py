# ideal: none
# sound: capture-scalars capture-scalars-and-shapes append-outside
# trap: the score changes what it is given; the loss computed before it would be another one
"""A forward whose score clamps the predictions in place before the loss is computed of them."""

import torch
import torch.nn as nn


def spread(y):
    y.clamp_(-0.5, 0.5)
    return y.std()


class Head(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return self.inner(x) * 2


class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()
        self.spreads = []

    def forward(self, x, target):
        y = self.head(x)
        score = spread(y).item()
        self.spreads.append(score)
        error = (y - target).abs()
        return error.mean()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    raw = Task()
    task = torch.compile(raw, backend="eager")
    for step in range(4):
        x = torch.randn(8, 6)
        error = task(x, torch.zeros(8, 6))
        print(f"{step} {error.item():.4f} {raw.spreads[-1]:.4f}")


main()
