"""Embedding tables and a small MLP: bound by launches and memory."""

import itertools
import sys
import time

import torch
from torch import nn

SMALL = "--small" in sys.argv
DEVICE = "cuda" if torch.cuda.is_available() and not SMALL else "cpu"
STEPS = 64 if SMALL else 640
WINDOW = STEPS // 16


def now():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Recommender(nn.Module):
    def __init__(self, tables, rows, width):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.top = nn.Sequential(
            nn.Linear(tables * width, 256),
            nn.ReLU(),
            nn.Linear(256, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, x):
        found = [table(x[:, n]) for n, table in enumerate(self.tables)]
        return self.top(torch.cat(found, 1)).sigmoid()


def build():
    return Recommender(4, 100, 8) if SMALL else Recommender(26, 100_000, 64)


def batch():
    shape, most = ((16, 4), 100) if SMALL else ((512, 26), 100_000)
    return torch.randint(0, most, shape, device=DEVICE)


def main():
    torch.manual_seed(0)
    model = build().to(DEVICE).eval()
    compiled = torch.compile(model)
    batches, times = [batch() for _ in range(4)], []
    with torch.no_grad():
        for step in range(STEPS):
            if step >= STEPS // 2 and step % WINDOW == 0:
                times.append(now())
            out = compiled(batches[step % 4])
    times.append(now())
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))
    print("shape", tuple(out.shape))


if __name__ == "__main__":
    main()
