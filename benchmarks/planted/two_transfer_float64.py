"""Images from memory that is not pinned, and a network for them with weights in float64."""

#: causes transfer float64
#: needs cuda
import numpy
import torch
from gpt import fast
from torch import nn
from turns import planted, run

TRANSFER, FLOAT64 = planted("transfer"), planted("float64")
fast()
images = torch.randn(64, 3, 224, 224, device="cpu" if TRANSFER else "cuda")
scale = numpy.linspace(0.5, 1.5, 224)
scale = torch.from_numpy(scale if FLOAT64 else scale.astype("float32")).cuda()
body = nn.Sequential(nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(256))
body = body.cuda().eval()
body(images[:1].cuda())


@torch.compile
def brightened(x: torch.Tensor) -> torch.Tensor:
    for _ in range(40):
        x = torch.tanh(x * scale) + x
    return x


model = torch.compile(body)


def step() -> None:
    with torch.no_grad():
        model(brightened(images.cuda()).float())  #: here transfer


run(step, 40)
