"""GPT in training: a loss in float64, and the device waited for after each part of the step."""

#: causes sync float64
#: needs cuda
import torch
from gpt import Net, batch, fast, optimizer
from torch.nn import functional
from turns import planted, run

SYNC, FLOAT64 = planted("sync"), planted("float64")
fast()
net = Net(width=1024, words=32768).cuda()
opt = optimizer(net)
model = torch.compile(net)
loss_of = torch.compile(lambda logits, ids: functional.cross_entropy(logits, ids.flatten()))
ids = batch(16)


def wait() -> None:
    if SYNC:
        torch.cuda.synchronize()  #: here sync


def step() -> None:
    logits = model(ids).flatten(0, -2)
    wait()
    loss = loss_of(logits.double() if FLOAT64 else logits, ids)  #: here float64
    wait()
    loss.backward()
    wait()
    opt.step()
    opt.zero_grad()
    wait()


run(step, 40)
