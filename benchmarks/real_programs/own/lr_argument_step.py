"""Physics-style regression with a hand-written optimizer; the update is a compiled function."""

import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

STEPS = 60
WARMUP = 6
PEAK_LR = 0.05
MIN_LR = 0.002
MOMENTUM = 0.9
LOG_EVERY = 15


def pendulum(count, seed):
    """(angle, speed, length) -> acceleration."""
    g = torch.Generator().manual_seed(seed)
    angle = (2 * torch.rand(count, generator=g) - 1) * math.pi
    speed = torch.randn(count, generator=g)
    length = 0.5 + torch.rand(count, generator=g)
    target = -torch.sin(angle) / length - 0.1 * speed
    target = target + 0.02 * torch.randn(count, generator=g)
    return TensorDataset(torch.stack([angle, speed, length], dim=1), target[:, None])


class Fourier(nn.Module):
    def __init__(self, inputs, features):
        super().__init__()
        self.register_buffer("basis", torch.randn(inputs, features))

    def forward(self, x):
        y = x @ self.basis
        return torch.cat([y.sin(), y.cos()], dim=-1)


class Net(nn.Module):
    def __init__(self, features=24, hidden=48):
        super().__init__()
        self.fourier = Fourier(3, features)
        self.layers = nn.Sequential(
            nn.Linear(2 * features, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(self.fourier(x))


def learning_rate(step):
    if step < WARMUP:
        return PEAK_LR * (step + 1) / WARMUP
    progress = (step - WARMUP) / (STEPS - WARMUP)
    return MIN_LR + 0.5 * (PEAK_LR - MIN_LR) * (1 + math.cos(math.pi * progress))


@torch.compile
def update(params, grads, momenta, lr):
    torch._foreach_mul_(momenta, MOMENTUM)
    torch._foreach_add_(momenta, grads)
    torch._foreach_add_(params, momenta, alpha=-lr)


class Momentum:
    def __init__(self, module):
        self.params = [p for p in module.parameters() if p.requires_grad]
        self.momenta = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, lr):
        grads = [p.grad for p in self.params]
        update([p.data for p in self.params], grads, self.momenta, lr)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def state_dict(self):
        return {"momenta": self.momenta}


def batches(loader):
    while True:
        yield from loader


@torch.no_grad()
def evaluate(model, loader):
    error = sum(F.mse_loss(model(x), y, reduction="sum").item() for x, y in loader)
    return error / len(loader.dataset)


def main():
    torch.manual_seed(13)
    train = DataLoader(pendulum(512, seed=1), 64, shuffle=True, drop_last=True)
    test = DataLoader(pendulum(128, seed=2), 64)
    net = Net()
    model = torch.compile(net)
    optimizer = Momentum(net)
    print(f"before: test mse {evaluate(model, test):.4f}")
    stream = batches(train)
    running = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            x, y = next(stream)
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step(learning_rate(step))
            running += loss.item()
            if (step + 1) % LOG_EVERY == 0:
                mse = evaluate(model, test)
                rate = learning_rate(step)
                print(
                    f"step {step + 1} lr {rate:.4f} loss {running / LOG_EVERY:.4f} test {mse:.4f}"
                )
                running = 0.0
                state = {"model": net.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, os.path.join(folder, f"step{step + 1}.pt"))
        names = sorted(os.listdir(folder))
        net.load_state_dict(torch.load(os.path.join(folder, names[-1]))["model"])
    print(f"{len(names)} checkpoints, final test mse {evaluate(model, test):.4f}")


if __name__ == "__main__":
    main()
