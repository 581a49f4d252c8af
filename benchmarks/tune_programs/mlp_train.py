"""A small MLP in training."""

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


def build():
    width, layers = (64, 3) if SMALL else (512, 8)
    inner = [m for _ in range(layers) for m in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*inner, nn.Linear(width, 10))


def batch():
    size, width = (32, 64) if SMALL else (256, 512)
    return torch.randn(size, width, device=DEVICE), torch.randint(0, 10, (size,), device=DEVICE)


def main():
    torch.manual_seed(0)
    model = build().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
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
