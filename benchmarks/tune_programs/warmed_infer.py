"""An encoder that answers requests, compiled by a call and a short loop before the real one."""

import itertools
import sys
import time

import torch
from torch import nn

SMALL = "--small" in sys.argv
DEVICE = "cuda" if torch.cuda.is_available() and not SMALL else "cpu"
STEPS = 64 if SMALL else 2000
WINDOW = STEPS // 16


def now():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def build():
    width, layers = (32, 1) if SMALL else (256, 8)
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), width


torch.manual_seed(0)
net, width = build()
serve = torch.compile(net.to(DEVICE).eval())


@torch.inference_mode()
def answer(x):
    return serve(x).mean(1)


def main():
    x, times = torch.randn(2, 64, width, device=DEVICE), []
    answer(x)
    for _ in range(5):
        answer(x)
    for step in range(STEPS):
        if step >= STEPS // 2 and step % WINDOW == 0:
            times.append(now())
        y = answer(x)
    times.append(now())
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))
    print("shape", tuple(y.shape))


if __name__ == "__main__":
    main()
