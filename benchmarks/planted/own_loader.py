"""Batches are made in Python, in the loop itself."""

#: cause python
import time

import torch
from gpt import DEVICE, STEPS, WORDS, Net, fast

fast()
model = torch.compile(Net(width=64, layers=1).to(DEVICE))


def read(step: int) -> torch.Tensor:
    time.sleep(0.2)  #: here
    return torch.full((4, 16), step % WORDS, device=DEVICE)


with torch.no_grad():
    for step in range(STEPS):
        model(read(step))
