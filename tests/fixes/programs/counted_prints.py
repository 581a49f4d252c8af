# ideal: print-after-graph
"""Counts the lines that a step prints: none of them may be missing."""

import contextlib
import io

import torch


def step(x):
    y = x * 2
    print("mean", y.mean())
    return y + 1


run = torch.compile(step, backend="eager")
out = io.StringIO()
with contextlib.redirect_stdout(out):
    for n in range(3):
        run(torch.full((2,), float(n)))
print(len(out.getvalue().splitlines()), "lines")
