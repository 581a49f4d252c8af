"""A small U-Net for segmentation, in plain torch.nn."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from compilescope.measure.bench.built import Built, Model, class_loss


def double_conv(taken: int, given: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(taken, given, 3, padding=1, bias=False),
        nn.BatchNorm2d(given),
        nn.ReLU(inplace=True),
        nn.Conv2d(given, given, 3, padding=1, bias=False),
        nn.BatchNorm2d(given),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):  # type: ignore[misc]
    """Each level down halves the image and doubles the channels; each level up undoes it and sees
    what went down beside it."""

    def __init__(self, width: int, levels: int, classes: int) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels + 1)]
        self.stem = double_conv(3, width)
        self.down = nn.ModuleList(
            double_conv(taken, given) for taken, given in itertools.pairwise(widths)
        )
        widths.reverse()
        self.widen = nn.ModuleList(
            nn.ConvTranspose2d(taken, given, 2, stride=2)
            for taken, given in itertools.pairwise(widths)
        )
        self.up = nn.ModuleList(double_conv(2 * given, given) for given in widths[1:])
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        beside = []
        for down in self.down:
            beside.append(x)
            x = down(self.pool(x))
        for widen, up in zip(self.widen, self.up, strict=True):
            x = up(torch.cat([beside.pop(), widen(x)], dim=1))
        pixels: Tensor = self.head(x)
        return pixels


def pixel_loss(pixels: Tensor) -> Tensor:
    return class_loss(pixels.movedim(1, -1))


def build(small: bool, batch: int) -> Built:
    model = UNet(8, 3, 4) if small else UNet(32, 4, 21)
    size = 64 if small else 128
    return Built(model.eval(), (torch.randn(batch, 3, size, size),), loss=pixel_loss)


MODEL = Model(
    name="unet",
    title="U-Net",
    about="A U-Net with four levels and 21 classes; plain torch.nn, random weights.",
    build=build,
    parameters=7_763_701,
    batch=1,
    small_batch=2,
    inputs="3x128x128 image",
    aliases=("u-net",),
)
