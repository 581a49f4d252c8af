"""Inference: all logits go to the CPU, where Python makes text of some."""

#: causes sync python
#: needs cuda
import json

import torch
from gpt import Net, batch, fast
from turns import planted, run

SYNC, PYTHON = planted("sync"), planted("python")
fast()
net = Net(width=2048).cuda().eval()
model = torch.compile(net)
ids = batch(8)
answer = [n / 7 for n in range(3000)]


def step() -> None:
    with torch.no_grad():
        logits = model(ids)
    if SYNC:
        logits.cpu()  #: here sync
    if PYTHON:
        json.dumps(answer)  #: here python


run(step, 60)
