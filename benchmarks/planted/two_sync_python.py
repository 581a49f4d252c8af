"""Inference block by block: each is waited for, and requests are parsed in the loop."""

#: causes sync python
#: needs cuda
import json

import torch
from gpt import WORDS, Net, batch, fast
from turns import planted, run

SYNC, PYTHON = planted("sync"), planted("python")
fast()
net = Net(width=512, layers=12).cuda().eval()
blocks = [torch.compile(block) for block in net.blocks]
ids = batch(8)
request = json.dumps([[n % WORDS, str(n)] for n in range(4000)])


def step() -> None:
    if PYTHON:
        json.loads(request)  #: here python
    with torch.no_grad():
        x = net.embedding(ids)
        for block in blocks:
            x = block(x)
            if SYNC:
                torch.cuda.synchronize()  #: here sync


run(step, 60)
