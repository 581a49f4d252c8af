"""Denoising diffusion on short waves with denoising-diffusion-pytorch: train, then sample."""

import importlib.machinery
import random
import sys
import types

import torch
from torch import nn

for name in ("torchvision", "torchvision.transforms", "torchvision.utils"):
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules.setdefault(name, module)
sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]
sys.modules["torchvision"].utils = sys.modules["torchvision.utils"]

from denoising_diffusion_pytorch import GaussianDiffusion1D  # noqa: E402

LENGTH = 16


class Denoiser(nn.Module):
    """Three convolutions with the time added in the middle."""

    def __init__(self, width=16, steps=20):
        super().__init__()
        self.channels = 1
        self.self_condition = True
        self.time = nn.Embedding(steps, width)
        self.first = nn.Conv1d(2, width, 5, padding=2)
        self.middle = nn.Conv1d(width, width, 5, padding=2)
        self.last = nn.Conv1d(width, 1, 5, padding=2)

    def forward(self, x, t, x_self_cond=None):
        if x_self_cond is None:
            x_self_cond = torch.zeros_like(x)
        h = self.first(torch.cat([x_self_cond, x], dim=1))
        h = torch.nn.functional.silu(h + self.time(t)[:, :, None])
        h = torch.nn.functional.silu(self.middle(h))
        return self.last(h)


def make_waves(size):
    phase = torch.rand(size, 1) * 6.28
    time = torch.linspace(0, 6.28, LENGTH)
    return (torch.sin(time + phase) * 0.5 + 0.5).unsqueeze(1)


def main():
    random.seed(4)
    torch.manual_seed(4)
    denoiser = Denoiser()
    diffusion = GaussianDiffusion1D(
        denoiser, seq_length=LENGTH, timesteps=20, sampling_timesteps=4, objective="pred_v"
    )
    diffusion.model = torch.compile(denoiser)
    optimizer = torch.optim.Adam(denoiser.parameters(), lr=1e-3)
    for step in range(8):
        loss = diffusion(make_waves(8))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, "loss", round(loss.item(), 2))
    waves = diffusion.sample(batch_size=8)
    print("samples", tuple(waves.shape), round(waves.mean().item(), 2))


if __name__ == "__main__":
    main()
