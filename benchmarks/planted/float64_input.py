"""An array of NumPy makes a compiled model one of float64."""

#: cause float64
import numpy
import torch
from gpt import DEVICE, STEPS, fast

fast()
size = 2048 if DEVICE == "cuda" else 256
weight = torch.from_numpy(numpy.random.default_rng(0).normal(size=(size, size))).to(DEVICE)


@torch.compile
def model(x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.tanh(x @ weight)
    return x


for _ in range(STEPS):
    model(torch.ones(size, size, device=DEVICE, dtype=torch.float64))
