"""DINO-like self-distillation with multi-crop lists; the teacher's momentum follows a cosine schedule."""
import copy
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Patchify(nn.Module):
    def __init__(self, dim, patch=4):
        super().__init__()
        self.conv = nn.Conv2d(3, dim, patch, patch)

    def forward(self, x):
        return self.conv(x).flatten(2).transpose(1, 2)


class MiniViT(nn.Module):
    def __init__(self, dim=24, out=16):
        super().__init__()
        self.patch = Patchify(dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.block = nn.TransformerEncoderLayer(dim, 2, 48, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, out)

    def forward(self, x):
        x = self.patch(x)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
        return self.head(self.block(x)[:, 0])


class MultiCrop(nn.Module):
    """Forwards a list of crops, grouping those of the same size."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, crops):
        out, start = [], 0
        while start < len(crops):
            end = start
            while end < len(crops) and crops[end].shape[-1] == crops[start].shape[-1]:
                end += 1
            out.append(self.net(torch.cat(crops[start:end])))
            start = end
        return torch.cat(out)


@torch.compile(backend="aot_eager")
@torch.no_grad()
def momentum_update(student, teacher, m):
    for s, t in zip(student, teacher):
        t.mul_(m).add_(s, alpha=1 - m)


def dino_loss(s, t, center, crops, temp):
    s = (s / 0.1).chunk(crops)
    t = ((t - center) / temp).softmax(-1).chunk(2)
    terms = [-(q * v.log_softmax(-1)).sum(-1).mean() for i, q in enumerate(t) for j, v in enumerate(s) if i != j]
    return sum(terms) / len(terms)


def crops_of(images, local):
    size = images.shape[-1]
    big = [images + 0.1 * torch.randn_like(images) for _ in range(2)]
    small = []
    for _ in range(local):
        y, x = torch.randint(0, size - 8, (2,)).tolist()
        small.append(images[..., y : y + 8, x : x + 8].contiguous())
    return big + small


def main(steps=14, local=4):
    torch.manual_seed(0)
    student = MultiCrop(MiniViT())
    teacher = copy.deepcopy(student).requires_grad_(False)
    s_fast = torch.compile(student, backend="aot_eager")
    t_fast = torch.compile(teacher, backend="aot_eager")
    opt = torch.optim.AdamW(student.parameters(), 1e-3)
    center = torch.zeros(16)
    for step in range(steps):
        images = torch.randn(4, 3, 16, 16)
        crops = crops_of(images, local)
        with torch.no_grad():
            t = t_fast(crops[:2])
        s = s_fast(crops)
        loss = dino_loss(s, t, center, len(crops), 0.04)
        opt.zero_grad()
        loss.backward()
        for p in student.parameters():
            if p.grad is not None:
                p.grad.clamp_(-1, 1)
        opt.step()
        m = 1 - 0.5 * (1 - 0.99) * (math.cos(math.pi * step / steps) + 1)
        momentum_update(list(student.parameters()), list(teacher.parameters()), m)
        center.mul_(0.9).add_(t.mean(0), alpha=0.1)
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.3f} m {m:.4f}", file=sys.stdout)
    print("done")


if __name__ == "__main__":
    main()
