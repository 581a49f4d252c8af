"""Class-conditional diffusion on 8x8 toy images: train, then sample with several guidances."""

import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 4
SIZE = 8
TIMESTEPS = 50
BATCH = 16


def make_images(count, seed):
    """Bright quadrant = class."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    images = 0.1 * torch.randn(count, 1, SIZE, SIZE, generator=generator) - 0.8
    half = SIZE // 2
    for i, label in enumerate(labels.tolist()):
        row, col = divmod(label, 2)
        images[i, 0, row * half : (row + 1) * half, col * half : (col + 1) * half] += 1.6
    return TensorDataset(images, labels)


class ResBlock(nn.Module):
    def __init__(self, channels, emb):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm2 = nn.GroupNorm(4, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.emb = nn.Linear(emb, channels)

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x))) + self.emb(emb)[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    def __init__(self, channels=8, emb=32):
        super().__init__()
        self.emb_dim = emb
        self.label = nn.Embedding(CLASSES + 1, emb)
        self.time = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.inp = nn.Conv2d(1, channels, 3, padding=1)
        self.block = ResBlock(channels, emb)
        self.out = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x, t, label):
        half = self.emb_dim // 2
        freqs = torch.exp(-math.log(1e4) * torch.arange(half, device=x.device) / half)
        angles = t[:, None].float() * freqs
        emb = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1)) + self.label(label)
        h = self.inp(x)
        h = self.block(h, emb)
        return self.out(F.silu(h))


betas = torch.linspace(1e-3, 0.15, TIMESTEPS)
alphas = torch.cumprod(1 - betas, 0)


def add_noise(images, noise, t):
    a = alphas[t][:, None, None, None]
    return a.sqrt() * images + (1 - a).sqrt() * noise


@torch.compile
def predict(model, x, t, label, guidance):
    if guidance == 1.0:
        return model(x, t, label)
    null = torch.full_like(label, CLASSES)
    both = model(torch.cat([x, x]), torch.cat([t, t]), torch.cat([label, null]))
    cond, uncond = both.chunk(2)
    scale = round(guidance, 1)
    return uncond + scale * (cond - uncond)


@torch.no_grad()
def sample(model, label, guidance, steps=8):
    model.eval()
    x = torch.randn(len(label), 1, SIZE, SIZE)
    times = torch.linspace(TIMESTEPS - 1, 0, steps).long().tolist()
    for i, step in enumerate(times):
        t = torch.full((len(label),), step)
        eps = predict(model, x, t, label, guidance)
        a = alphas[step]
        prev = alphas[times[i + 1]] if i + 1 < steps else torch.tensor(1.0)
        clean = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1.5, 1.5)
        x = prev.sqrt() * clean + (1 - prev).sqrt() * eps
    return x


def quadrant_score(images, label):
    half = SIZE // 2
    means = F.avg_pool2d(images, half).flatten(1)
    return (means.argmax(1) == label).float().mean().item()


def main():
    torch.manual_seed(0)
    loader = DataLoader(make_images(256, seed=1), BATCH, shuffle=True, drop_last=True)
    model = Denoiser()
    ema = Denoiser()
    ema.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    for epoch in range(4):
        model.train()
        total = 0.0
        for images, labels in loader:
            drop = torch.rand(len(labels)) < 0.1
            labels = labels.masked_fill(drop, CLASSES)
            t = torch.randint(TIMESTEPS, (len(images),))
            noise = torch.randn_like(images)
            loss = F.mse_loss(model(add_noise(images, noise, t), t, labels), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for p, q in zip(ema.parameters(), model.parameters(), strict=True):
                    p.lerp_(q, 0.05)
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")

    with tempfile.TemporaryDirectory() as folder:
        torch.save(ema.state_dict(), os.path.join(folder, "ema.pt"))

    label = torch.arange(CLASSES).repeat(4)
    for guidance in (1.0, 1.5, 3.0, 5.0):
        images = sample(ema, label, guidance)
        score = quadrant_score(images, label)
        print(f"guidance {guidance}: std {images.std().item():.2f} score {score:.2f}")


if __name__ == "__main__":
    main()
