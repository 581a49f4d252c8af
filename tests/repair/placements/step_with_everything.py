"""Forecasts of sums of sines: one compiled function does the whole step, metrics included."""

import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.over_time = nn.Linear(length, length)
        self.over_width = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU())
        self.back = nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.over_time(x.transpose(1, 2)).transpose(1, 2)
        return x + self.back(self.over_width(x))


class Forecaster(nn.Module):
    def __init__(self, length=16, width=8, depth=2):
        super().__init__()
        self.into = nn.Linear(1, width)
        self.mixers = nn.ModuleList([Mixer(length, width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.into(x)
        for mixer in self.mixers:
            x = mixer(x)
        return self.out(x).squeeze(-1)


def build(depth):
    forecaster = Forecaster(depth=depth)
    for name, parameter in forecaster.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    return forecaster


def batches(count, generator):
    for _ in range(count):
        phase = 6.3 * torch.rand(4, 1, generator=generator)
        wave = torch.sin(torch.arange(17) * 0.4 + phase)
        yield wave[:, :-1, None], wave[:, 1:]


@torch.compile(backend="aot_eager")
def advance(net, optimizer, wave, target, seen):
    optimizer.zero_grad()
    guess = net(wave)
    loss = (guess - target).square().mean()
    loss.backward()
    optimizer.step()
    error = (guess - target).abs().mean().item()
    seen.append(error)
    if error < 0.01:
        print("good enough")
    return loss.detach()


def run():
    torch.manual_seed(3)
    net = build(depth=2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    seen = []
    for wave, target in batches(6, torch.Generator().manual_seed(1)):
        loss = advance(net, optimizer, wave, target, seen)
    print(f"{len(seen)} steps, last loss {loss:.3f}")


if __name__ == "__main__":
    run()
