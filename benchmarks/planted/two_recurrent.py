"""A recurrent network, one compiled cell after the other: each asks the host whether to go on, and
the states are kept in float64."""

#: causes sync float64
#: needs cuda
import torch
from gpt import fast
from torch import nn
from turns import planted, run

SYNC, FLOAT64 = planted("sync"), planted("float64")
fast()
dtype = torch.float64 if FLOAT64 else torch.float32
cell = nn.GRUCell(1024, 1024).cuda().to(dtype).eval()
advance = torch.compile(cell)
words = torch.randn(24, 512, 1024, device="cuda", dtype=dtype)


def step() -> None:
    state = torch.zeros(512, 1024, device="cuda", dtype=dtype)
    with torch.no_grad():
        for word in words:
            state = advance(word, state)
            if SYNC and state[0, 0].item() > 10:  #: here sync
                break


run(step, 40)
