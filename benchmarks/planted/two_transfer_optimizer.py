"""A convolutional network in training: images not pinned, and Adam one operator at a time."""

#: causes transfer optimizer
#: needs cuda
import torch
from gpt import fast
from torch import nn
from turns import planted, run

TRANSFER, OPTIMIZER = planted("transfer"), planted("optimizer")
fast()
form = torch.channels_last
layers = [nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()) for _ in range(16)]
net = nn.Sequential(nn.Conv2d(3, 64, 4, 4), *layers).cuda().to(memory_format=form)
fused = {"foreach": False} if OPTIMIZER else {"fused": True}
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, **fused)
model = torch.compile(net)
images = torch.randn(32, 3, 224, 224).to(memory_format=form)
images = images if TRANSFER else images.cuda()


def step() -> None:
    model(images.cuda()).square().mean().backward()  #: here transfer
    opt.step()
    opt.zero_grad()


run(step, 40)
