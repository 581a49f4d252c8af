"""What breaks cost on a GPU by its own clock, held to what is known of them.

    python benchmarks/break_device_time.py

A step has three graph breaks whose cost on the GPU is known: one after much work, with host work
that the GPU need not wait for; one with a product outside graphs; one that waits for a value, with
2 ms of host work after it, in which the GPU has nothing to do. The product is timed by itself, too.
"""

from __future__ import annotations

import sys
import time

import torch

import compilescope

STEPS = 20
HOST_S = 0.002


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


@torch.compiler.disable
def on_the_host(x: torch.Tensor) -> torch.Tensor:
    busy(HOST_S)
    return x


@torch.compiler.disable
def on_the_gpu(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


@torch.compiler.disable
def wait(x: torch.Tensor) -> torch.Tensor:
    x[0, 0].item()
    busy(HOST_S)
    return x


@torch.compile
def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.tanh(x @ w)
    x = on_the_host(x)
    x = torch.tanh(x @ w)
    x = on_the_gpu(x, w)
    x = torch.tanh(x @ w)
    x = wait(x)
    return torch.tanh(x)


def product_ms(x: torch.Tensor, w: torch.Tensor) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(STEPS):
        x @ w
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / STEPS


def main() -> int:
    if not torch.cuda.is_available():
        print("There is no GPU: these are the host's times of a smaller step.")
    device, size = ("cuda", 8192) if torch.cuda.is_available() else ("cpu", 256)
    x, w = (torch.randn(size, size, device=device) / 90 for _ in range(2))
    with torch.no_grad(), compilescope.capture(time=True) as run:
        for _ in range(STEPS):
            step(x, w)
        if device == "cuda":
            torch.cuda.synchronize()
    digest = run.digest
    print(f"coverage {digest.coverage} %, clock {[cost.clock for cost in digest.region_costs]}")
    for site in sorted(digest.sites, key=lambda each: each.line):
        print(f"line {site.line}: {site.lost_ms or 0:8.2f} ms lost in all: {site.gb_type}")
    if device == "cpu":
        return 0
    print(f"a product takes {product_ms(x, w):.2f} ms; the host's work {HOST_S * 1000:.0f} ms")
    print("Wanted for each of some 19 steps: about 0, about a product, about the host's work.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
