"""Evaluation: a distance in float64, and results written as text in the loop."""

#: causes python float64
import json

import numpy
import torch
from gpt import DEVICE, ON_GPU, Net, batch, fast
from turns import planted, run

PYTHON, FLOAT64 = planted("python"), planted("float64")
fast()
net = Net(layers=1).to(DEVICE).eval()
model = torch.compile(net)
centre = numpy.random.default_rng(0).normal(size=(1024, 1024))
centre = torch.from_numpy(centre if FLOAT64 else centre.astype("float32")).to(DEVICE)
rows = [[n, str(n)] for n in range(2000 if ON_GPU else 40000)]


@torch.compile
def distance(logits: torch.Tensor) -> torch.Tensor:
    return torch.matmul(logits.to(centre.dtype), centre).pow(2).mean()


def step() -> None:
    with torch.no_grad():
        distance(model(batch()))
    if PYTHON:
        json.loads(json.dumps(rows))  #: here python


run(step)
