"""Inference: a number read after each block, and a head of many operators that is not compiled."""

#: causes sync uncompiled
#: needs cuda
import torch
from gpt import Net, batch, fast
from turns import planted, run

SYNC, UNCOMPILED = planted("sync"), planted("uncompiled")
fast()
net = Net(width=1024, layers=8).cuda().eval()
blocks = [torch.compile(block) for block in net.blocks]
ids = batch(16)


def smooth(x: torch.Tensor) -> torch.Tensor:
    for _ in range(12):
        x = torch.softmax(torch.mul(x, 1.01), -1)  #: here uncompiled
    return x


head = smooth if UNCOMPILED else torch.compile(smooth)
peak = 0.0


def step() -> None:
    global peak
    with torch.no_grad():
        x = net.embedding(ids)
        for block in blocks:
            x = block(x)
            if SYNC:
                peak = max(peak, x[0, 0, 0].item())  #: here sync
        head(x)


run(step, 60)
