"""ResNet-18, in plain torch.nn."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from compilescope.measure.bench.built import Built, Model, class_loss


class BasicBlock(nn.Module):  # type: ignore[misc]
    """Two 3x3 convolutions and the way around them."""

    def __init__(self, taken: int, given: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(taken, given, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(given)
        self.conv2 = nn.Conv2d(given, given, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(given)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or taken != given:
            self.downsample = nn.Sequential(
                nn.Conv2d(taken, given, 1, stride, bias=False), nn.BatchNorm2d(given)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + self.downsample(x))


class ResNet(nn.Module):  # type: ignore[misc]
    """Four stages of two blocks; each but the first halves the image."""

    def __init__(self, widths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, 2, 3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks: list[nn.Module] = []
        taken = widths[0]
        for number, width in enumerate(widths):
            blocks += [BasicBlock(taken, width, 2 if number else 1), BasicBlock(width, width, 1)]
            taken = width
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(taken, classes)

    def forward(self, x: Tensor) -> Tensor:
        features = self.pool(self.blocks(self.stem(x)))
        logits: Tensor = self.fc(features.flatten(1))
        return logits


def build(small: bool, batch: int) -> Built:
    model = ResNet((16, 32, 64, 128), 10) if small else ResNet((64, 128, 256, 512), 1000)
    size = 64 if small else 224
    return Built(model.eval(), (torch.randn(batch, 3, size, size),), loss=class_loss)


MODEL = Model(
    name="resnet",
    title="ResNet-18",
    about="ResNet-18 with 1000 classes; plain torch.nn, random weights.",
    build=build,
    parameters=11_689_512,
    batch=4,
    small_batch=2,
    inputs="3x224x224 image",
    aliases=("resnet18", "resnet-18"),
)
