"""Binary segmentation of discs; metric in the compiled step for the progress bar."""
import logging
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("seg")


class Discs(Dataset):
    def __init__(self, n, size=24, seed=0):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.items = []
        for _ in range(n):
            cx, cy, r = torch.rand(3, generator=g).tolist()
            cx, cy, r = 4 + cx * (size - 8), 4 + cy * (size - 8), 3 + 4 * r
            m = (((xx - cx) ** 2 + (yy - cy) ** 2) < r * r).float()[None]
            self.items.append((m + 0.5 * torch.randn(1, size, size, generator=g), m))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def double_conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.d1, self.d2, self.mid = double_conv(1, w), double_conv(w, 2 * w), double_conv(2 * w, 4 * w)
        self.u2, self.u1 = double_conv(6 * w, 2 * w), double_conv(3 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        c = self.u2(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1))
        c = self.u1(torch.cat([F.interpolate(c, scale_factor=2.0), a], 1))
        return self.out(c)


def dice(logits, mask, eps=1e-6):
    p = (logits > 0).float()
    inter = (p * mask).sum((1, 2, 3))
    return ((2 * inter + eps) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + eps)).mean()


class SegmentationTask(nn.Module):
    """Network, loss and metrics together, so that one call does everything."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.meter = {"dice": [], "iou": []}

    def forward(self, image, mask):
        logits = self.net(image)
        bce = F.binary_cross_entropy_with_logits(logits, mask)
        score = dice(logits.detach(), mask).item()
        self.meter["dice"].append(score)
        soft = 1 - (2 * (logits.sigmoid() * mask).sum() + 1) / (logits.sigmoid().sum() + mask.sum() + 1)
        return bce + soft

    def pop(self, key):
        values, self.meter[key] = self.meter[key], []
        return sum(values) / max(len(values), 1)


def run_epoch(task, loader, optimizer=None):
    training = optimizer is not None
    task.train(training)
    total = 0.0
    with torch.set_grad_enabled(training):
        for image, mask in loader:
            loss = task(image, mask)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(0)
    train = DataLoader(Discs(48, seed=1), batch_size=8, shuffle=True)
    val = DataLoader(Discs(16, seed=2), batch_size=8)
    raw = SegmentationTask(TinyUNet())
    task = torch.compile(raw, backend="aot_eager")
    optimizer = torch.optim.AdamW(raw.parameters(), lr=2e-3)
    best = -1.0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(3):
            tl = run_epoch(task, train, optimizer)
            td = raw.pop("dice")
            vl = run_epoch(task, val)
            vd = raw.pop("dice")
            log.info("epoch %d train %.3f dice %.3f | val %.3f dice %.3f", epoch, tl, td, vl, vd)
            if vd > best:
                best = vd
                torch.save(raw.net.state_dict(), os.path.join(folder, "best.pt"))
    log.info("best %.3f", best)


if __name__ == "__main__":
    main()
