"""A convolutional autoencoder in training."""

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


def build():
    width = 8 if SMALL else 64
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 3, 4, 2, 1),
    )


def batch():
    x = torch.randn((2, 3, 32, 32) if SMALL else (32, 3, 128, 128), device=DEVICE)
    return x, x


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
        loss = nn.functional.mse_loss(compiled(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    times.append(now())
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))


if __name__ == "__main__":
    main()
