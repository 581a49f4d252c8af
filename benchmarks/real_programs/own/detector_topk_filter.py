#!/usr/bin/env python
"""Anchor-free detector (CenterNet style) on synthetic squares."""
import argparse
import json
import sys

import torch
from torch import nn
import torch.nn.functional as F


def make_batch(n, size, rng):
    img = torch.randn(n, 1, size, size, generator=rng) * 0.1
    heat = torch.zeros(n, 1, size // 4, size // 4)
    wh = torch.zeros(n, 2, size // 4, size // 4)
    for i in range(n):
        for _ in range(int(torch.randint(1, 4, (1,), generator=rng))):
            s = int(torch.randint(4, 10, (1,), generator=rng))
            y, x = (int(v) for v in torch.randint(0, size - s, (2,), generator=rng))
            img[i, 0, y : y + s, x : x + s] += 1
            cy, cx = (y + s // 2) // 4, (x + s // 2) // 4
            heat[i, 0, cy, cx] = 1
            wh[i, :, cy, cx] = s
    return img, heat, wh


class CenterDetector(nn.Module):
    def __init__(self, w=16, keep=20, threshold=0.3):
        super().__init__()
        self.keep, self.threshold = keep, threshold
        self.body = nn.Sequential(
            nn.Conv2d(1, w, 3, stride=2, padding=1), nn.BatchNorm2d(w), nn.ReLU(),
            nn.Conv2d(w, w, 3, stride=2, padding=1), nn.BatchNorm2d(w), nn.ReLU(),
            nn.Conv2d(w, w, 3, padding=1), nn.ReLU(),
        )
        self.heat, self.wh = nn.Conv2d(w, 1, 1), nn.Conv2d(w, 2, 1)
        nn.init.constant_(self.heat.bias, -2.0)

    def forward(self, images, targets=None):
        feats = self.body(images)
        heat, wh = self.heat(feats), self.wh(feats)
        if targets is not None:
            return self.loss(heat, wh, *targets)
        return self.decode(heat.sigmoid(), wh)

    def loss(self, heat, wh, t_heat, t_wh):
        focal = F.binary_cross_entropy_with_logits(heat, t_heat, pos_weight=torch.tensor(10.0))
        return {"heat": focal, "wh": 0.1 * (F.l1_loss(wh, t_wh, reduction="none") * t_heat).sum() / t_heat.sum()}

    def decode(self, heat, wh):
        peak = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
        scores, index = peak.flatten(1).topk(self.keep)
        width = heat.shape[-1]
        out = []
        for i in range(heat.shape[0]):
            sel = scores[i] > self.threshold
            idx = index[i][sel]
            cy, cx = idx // width * 4.0, idx % width * 4.0
            size = wh[i].flatten(1)[:, idx]
            boxes = torch.stack([cx - size[0] / 2, cy - size[1] / 2, cx + size[0] / 2, cy + size[1] / 2], -1)
            out.append({"boxes": boxes, "scores": scores[i][sel]})
        return out


def evaluate(model, batches):
    model.eval()
    found = 0
    with torch.no_grad():
        for img, heat, _ in batches:
            found += sum(len(p["boxes"]) for p in model(img))
    return found / sum(h.sum().item() for _, h, _ in batches)


def main(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=30)
    ap.add_argument("--size", type=int, default=32)
    opts = ap.parse_args(argv)
    torch.manual_seed(3)
    rng = torch.Generator().manual_seed(4)
    model = CenterDetector()
    model.compile(backend="aot_eager")
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    held = [make_batch(4, opts.size, rng) for _ in range(4)]
    report = []
    for it in range(opts.iters):
        img, heat, wh = make_batch(4, opts.size, rng)
        model.train()
        losses = model(img, (heat, wh))
        total = sum(losses.values())
        sgd.zero_grad()
        total.backward()
        sgd.step()
        if it % 10 == 9:
            ratio = evaluate(model, held)
            report.append({"it": it, "loss": round(total.item(), 3), "found_ratio": round(ratio, 2)})
            print(report[-1])
    json.dump(report, sys.stdout)
    print()


if __name__ == "__main__":
    main()
