"""Large products without TF32, in training, and a wait for the device after each block."""

#: causes tf32 sync
#: needs cuda
import torch
from gpt import Net, batch, fast, optimizer
from turns import planted, run

TF32, SYNC = planted("tf32"), planted("sync")
fast()
if TF32:
    torch.set_float32_matmul_precision("highest")
net = Net(width=1024).cuda()
opt = optimizer(net)
blocks = [torch.compile(block) for block in net.blocks]
ids = batch(16)


def step() -> None:
    x = net.embedding(ids)
    for block in blocks:
        x = block(x)
        if SYNC:
            torch.cuda.synchronize()  #: here sync
    x.square().mean().backward()
    opt.step()
    opt.zero_grad()


run(step, 40)
