"""GAN on a ring of Gaussians; generator and discriminator compiled, samples taken in eval mode."""

import math
import pathlib
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

MODES = 6
LATENT = 8
BATCH = 64


def ring(count, seed):
    g = torch.Generator().manual_seed(seed)
    mode = torch.randint(MODES, (count,), generator=g)
    angle = 2 * math.pi * mode / MODES
    centers = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centers + 0.06 * torch.randn(count, 2, generator=g)


class Generator(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(LATENT, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden),
            nn.LeakyReLU(0.2),
            nn.Dropout(0.1),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def hinge_d(real, fake):
    return F.relu(1 - real).mean() + F.relu(1 + fake).mean()


def coverage(samples):
    angle = 2 * math.pi * torch.arange(MODES) / MODES
    centers = torch.stack([angle.cos(), angle.sin()], dim=1)
    distance, nearest = torch.cdist(samples, centers).min(dim=1)
    good = distance < 0.3
    return nearest[good].unique().numel(), good.float().mean().item()


class Trainer:
    def __init__(self):
        self.generator, self.discriminator = Generator(), Discriminator()
        self.g = torch.compile(self.generator)
        self.d = torch.compile(self.discriminator)
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.99))
        self.opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=2e-3, betas=(0.5, 0.99))

    def step_d(self, real):
        with torch.no_grad():
            fake = self.g(torch.randn(len(real), LATENT))
        loss = hinge_d(self.d(real), self.d(fake))
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.detach()

    def step_g(self, count):
        self.discriminator.requires_grad_(False)
        loss = -self.d(self.g(torch.randn(count, LATENT))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.discriminator.requires_grad_(True)
        return loss.detach()

    @torch.no_grad()
    def sample(self, noise):
        self.generator.eval()
        out = torch.cat([self.g(z) for z in noise.split(BATCH)])
        self.generator.train()
        return out

    def state_dict(self):
        return {
            "generator": self.generator.state_dict(),
            "discriminator": self.discriminator.state_dict(),
            "opt_g": self.opt_g.state_dict(),
            "opt_d": self.opt_d.state_dict(),
        }


def main():
    torch.manual_seed(17)
    loader = DataLoader(TensorDataset(ring(1024, seed=1)), BATCH, shuffle=True, drop_last=True)
    noise = torch.randn(4 * BATCH, LATENT)
    trainer = Trainer()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "gan.pt"
        for epoch in range(1, 7):
            d_total, g_total = torch.zeros(()), torch.zeros(())
            for (real,) in loader:
                d_total += trainer.step_d(real)
                g_total += trainer.step_g(len(real))
            if epoch % 2 == 0:
                modes, quality = coverage(trainer.sample(noise))
                d_loss, g_loss = d_total.item() / len(loader), g_total.item() / len(loader)
                print(f"epoch {epoch} d {d_loss:.2f} g {g_loss:.2f} modes {modes} in {quality:.2f}")
                torch.save(trainer.state_dict(), path)
        restored = torch.load(path)
        print("checkpoint:", ", ".join(sorted(restored)))


if __name__ == "__main__":
    main()
