"""Foreground segmentation of photos that keep their own size (one photo a step)."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SIZES = [(32, 32), (32, 40), (40, 32), (48, 40)]


class Photos(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(self.seed + index)
        height, width = SIZES[(index * 3 + self.seed) % len(SIZES)]
        cy = height * (0.3 + 0.4 * torch.rand(1, generator=g))
        cx = width * (0.3 + 0.4 * torch.rand(1, generator=g))
        radius = min(height, width) * (0.15 + 0.15 * torch.rand(1, generator=g))
        ys = torch.arange(height)[:, None].float()
        xs = torch.arange(width)[None].float()
        mask = (((ys - cy) ** 2 + (xs - cx) ** 2).sqrt() < radius).float()
        image = 0.4 * torch.rand(3, height, width, generator=g)
        image = image + mask * torch.tensor([0.5, 0.2, 0.1])[:, None, None]
        return image, mask[None]


def conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = conv(3, width)
        self.middle = conv(width, width)
        self.up = conv(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.middle(F.max_pool2d(a, 2))
        b = F.interpolate(b, scale_factor=2.0, mode="nearest")
        return self.head(self.up(torch.cat([a, b], dim=1)))


def dice_loss(logits, mask):
    probs = logits.sigmoid()
    overlap = (probs * mask).sum()
    return 1 - (2 * overlap + 1) / (probs.sum() + mask.sum() + 1)


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.inter = self.union = 0.0

    def update(self, logits, mask):
        pred = logits > 0
        truth = mask > 0.5
        self.inter += (pred & truth).sum().item()
        self.union += (pred | truth).sum().item()

    @property
    def iou(self):
        return self.inter / max(self.union, 1.0)


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for image, mask in loader:
        logits = model(image)
        loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def validate(model, loader, meter):
    model.eval()
    meter.reset()
    for image, mask in loader:
        meter.update(model(image), mask)
    return meter.iou


def main():
    torch.manual_seed(42)
    train = DataLoader(Photos(32, seed=0), batch_size=1, shuffle=True)
    valid = DataLoader(Photos(12, seed=500), batch_size=1)
    net = UNet()
    model = torch.compile(net, dynamic=False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    meter = Meter()
    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "unet.pt")
        for epoch in range(3):
            loss = train_epoch(model, train, optimizer)
            iou = validate(net, valid, meter)
            scheduler.step()
            print(f"epoch {epoch + 1}: loss {loss:.3f} iou {iou:.3f}")
            if iou >= best:
                best = iou
                torch.save(net.state_dict(), path)
        net.load_state_dict(torch.load(path))
        print(f"best iou {validate(net, valid, meter):.3f}")


if __name__ == "__main__":
    main()
