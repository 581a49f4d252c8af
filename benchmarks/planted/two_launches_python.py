"""A deep and narrow model, and its prompts parsed in the loop."""

#: causes launches python
#: needs cuda
import json

import torch
from gpt import Net, batch, fast
from turns import planted, run

LAUNCHES, PYTHON = planted("launches"), planted("python")
fast()
net = Net(width=64, layers=32).cuda().eval()
model = torch.compile(net, mode=None if LAUNCHES else "reduce-overhead")
ids = batch(1)
prompt = json.dumps([[n, str(n)] for n in range(2000)])


def step() -> None:
    if PYTHON:
        json.loads(prompt)  #: here python
    with torch.no_grad():
        model(ids)


run(step, 60)
