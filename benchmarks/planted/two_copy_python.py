"""A transposed input made contiguous in each step, and samples made in Python beside it."""

#: causes copy python
import json

import torch
from gpt import DEVICE, ON_GPU, fast
from turns import planted, run

COPY, PYTHON = planted("copy"), planted("python")
fast()
size = 16384 if ON_GPU else 3072
table = torch.randn(size, size, device=DEVICE)
turned = table.t().contiguous()
samples = json.dumps([[n, str(n)] for n in range(3000 if ON_GPU else 10000)])


@torch.compile
def model(x: torch.Tensor) -> torch.Tensor:
    return x[:64].sum(1)


def step() -> None:
    model(table.t().contiguous() if COPY else turned)  #: here copy
    if PYTHON:
        json.loads(samples)  #: here python


run(step)
