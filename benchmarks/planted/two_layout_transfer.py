"""Convolutions of half precision in NCHW, and images from memory that is not pinned."""

#: causes layout transfer
#: needs cuda
import torch
from gpt import fast
from torch import nn
from turns import planted, run

LAYOUT, TRANSFER = planted("layout"), planted("transfer")
fast()
form = torch.contiguous_format if LAYOUT else torch.channels_last
layers = [nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(12)]
net = (
    nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *layers)
    .cuda()
    .half()
    .eval()
    .to(memory_format=form)
)
model = torch.compile(net, options={"layout_optimization": False})
images = torch.randn(64, 3, 112, 112, dtype=torch.float16).to(memory_format=form)
images = images if TRANSFER else images.cuda()


def step() -> None:
    with torch.no_grad():
        model(images.cuda())  #: here transfer


run(step, 40)
