"""A recurrent network unrolled by hand, in training."""

import itertools
import sys
import time

import torch
from torch import nn

SMALL = "--small" in sys.argv
DEVICE = "cuda" if torch.cuda.is_available() and not SMALL else "cpu"
STEPS = 64 if SMALL else 320
WINDOW = STEPS // 16


def now():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Recurrent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell, self.head = nn.GRUCell(width, width), nn.Linear(width, 10)

    def forward(self, x):
        h = torch.zeros_like(x[0])
        for each in x:
            h = self.cell(each, h)
        return self.head(h)


def build():
    return Recurrent(16 if SMALL else 256)


def batch():
    length, size, width = (4, 8, 16) if SMALL else (24, 64, 256)
    x = torch.randn(length, size, width, device=DEVICE)
    return x, torch.randint(0, 10, (size,), device=DEVICE)


def main():
    torch.manual_seed(0)
    model = build().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    compiled = torch.compile(model)
    batches, times = [batch() for _ in range(4)], []
    for step in range(STEPS):
        if step >= STEPS // 2 and step % WINDOW == 0:
            times.append(now())
        x, y = batches[step % 4]
        loss = nn.functional.cross_entropy(compiled(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    times.append(now())
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))


if __name__ == "__main__":
    main()
