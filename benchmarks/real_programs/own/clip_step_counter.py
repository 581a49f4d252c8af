"""Two-tower contrastive training (image vectors and captions), CLIP style."""

import argparse
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

CONCEPTS, PIXELS, WORDS, CAPTION = 12, 32, 60, 6


def make_pairs(count, seed):
    shared = torch.Generator().manual_seed(0)
    looks = torch.randn(CONCEPTS, PIXELS, generator=shared)
    names = torch.randint(WORDS, (CONCEPTS, CAPTION), generator=shared)
    g = torch.Generator().manual_seed(seed)
    concept = torch.randint(CONCEPTS, (count,), generator=g)
    images = looks[concept] + 0.8 * torch.randn(count, PIXELS, generator=g)
    captions = names[concept].clone()
    noise = torch.rand(captions.shape, generator=g) < 0.2
    captions[noise] = torch.randint(WORDS, (int(noise.sum()),), generator=g)
    return TensorDataset(images, captions, concept)


class ImageTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(PIXELS, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, dim)
        )

    def forward(self, images):
        return F.normalize(self.net(images), dim=-1)


class TextTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.mix = nn.Linear(32, 32)
        self.out = nn.Linear(32, dim)

    def forward(self, captions):
        x = F.gelu(self.mix(self.embed(captions))).mean(dim=1)
        return F.normalize(self.out(x), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, dim=24, warmup=10):
        super().__init__()
        self.image, self.text = ImageTower(dim), TextTower(dim)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
        self.warmup = warmup
        self.steps = 0

    def forward(self, images, captions):
        if self.training:
            self.steps += 1
        a, b = self.image(images), self.text(captions)
        scale = self.logit_scale.clamp(max=math.log(100)).exp()
        logits = scale * a @ b.T
        target = torch.arange(len(images), device=images.device)
        loss = F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)
        return loss / 2, logits


@torch.no_grad()
def retrieval(model, loader):
    model.eval()
    hits = total = 0
    for images, captions, concept in loader:
        _, logits = model(images, captions)
        found = concept[logits.argmax(dim=1)]
        hits += (found == concept).sum().item()
        total += len(images)
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(6)
    train = DataLoader(make_pairs(320, seed=1), args.batch_size, shuffle=True, drop_last=True)
    test = DataLoader(make_pairs(96, seed=2), args.batch_size)
    net = TwoTower()
    model = torch.compile(net)
    decay = [p for p in net.parameters() if p.ndim > 1]
    other = [p for p in net.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}],
        lr=args.lr,
    )
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(args.epochs):
            model.train()
            losses = []
            for images, captions, _ in train:
                loss, _ = model(images, captions)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    net.logit_scale.clamp_(0, math.log(100))
                losses.append(loss.detach())
                if net.steps < net.warmup:
                    for group in optimizer.param_groups:
                        group["lr"] = args.lr * (net.steps + 1) / net.warmup
            mean = torch.stack(losses).mean().item()
            score = retrieval(model, test)
            temperature = 1 / net.logit_scale.exp().item()
            print(f"epoch {epoch} loss {mean:.3f} t {temperature:.4f} retrieval {score:.2f}")
            checkpoint = {"model": net.state_dict(), "steps": net.steps}
            torch.save(checkpoint, os.path.join(folder, "last.pt"))
        print("steps in checkpoint:", torch.load(os.path.join(folder, "last.pt"))["steps"])


if __name__ == "__main__":
    main()
