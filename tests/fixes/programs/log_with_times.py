# ideal: tensor-for-number
"""A training script whose log tells the time, how fast it goes, and where it writes."""

import logging
import os
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

FORM = "%(asctime)s [pid %(process)d] %(name)s %(levelname)s: %(message)s"


def make_logger(stream):
    logger = logging.getLogger("train" if stream is sys.stdout else "model")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORM))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    return logger


class Meter:
    def __init__(self):
        self.begun, self.steps, self.total = time.perf_counter(), 0, 0.0

    def add(self, loss):
        self.steps += 1
        self.total += loss

    def line(self):
        seconds = time.perf_counter() - self.begun
        speed = self.steps / seconds
        return f"loss {self.total / self.steps:.5f} ({speed:.2f} steps/s, {seconds * 1e3:.3f} ms)"


class Scaled(nn.Module):
    """Rows are brought to one size by the largest number in the batch."""

    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        scale = x.abs().max().item()
        h = torch.relu(self.lin(x / scale))
        return self.out(h).squeeze(-1)


def batches(count, width, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(8, width, generator=generator)
        yield x, x.sum(dim=-1)


def train(model, steps, log, alarms):
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    meter = Meter()
    for step, (x, y) in enumerate(batches(steps, 6, seed=1)):
        loss = F.mse_loss(compiled(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.add(loss.item())
        if step % 3 == 2:
            log.info("step %d: %s", step, meter.line())
            alarms.info("step took %.6f s", time.perf_counter() - meter.begun)
    return meter


def main():
    torch.manual_seed(0)
    log, alarms = make_logger(sys.stdout), make_logger(sys.stderr)
    model = Scaled(6)
    meter = train(model, 9, log, alarms)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.save(model.state_dict(), path)
        log.info("saved to %s after %.4fs", path, time.perf_counter() - meter.begun)
    print(f"started {time.time():.2f}; final loss {meter.total / meter.steps:.4f}")


if __name__ == "__main__":
    main()
