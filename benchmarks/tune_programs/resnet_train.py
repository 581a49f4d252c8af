"""A residual network of convolutions in training."""

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


def layer(inside, outside, stride=1):
    convolution = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outside), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(layer(width, width), layer(width, width))

    def forward(self, x):
        return x + self.inner(x)


def build():
    widths = (8, 16) if SMALL else (64, 128, 256, 512)
    layers, last = [], 3
    for width in widths:
        layers += [layer(last, width, 2), Residual(width), Residual(width)]
        last = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, 100))


def batch():
    shape = (2, 3, 32, 32) if SMALL else (64, 3, 128, 128)
    return torch.randn(shape, device=DEVICE), torch.randint(0, 100, (shape[0],), device=DEVICE)


def main():
    torch.manual_seed(0)
    model = build().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
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
