"""Convolutions of half precision in NCHW: the library changes the layout around each."""

#: cause layout
#: needs cuda
import torch
from gpt import fast
from torch import nn

fast()
layers = [nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(8)]
net = nn.Sequential(*layers).cuda().half().eval()
model = torch.compile(net, options={"layout_optimization": False})
image = torch.randn(64, 64, 112, 112, device="cuda", dtype=torch.float16)
with torch.no_grad():
    for _ in range(40):
        model(image)
