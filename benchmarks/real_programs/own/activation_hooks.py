"""ResNet-ish classifier with dead-unit monitoring in forward hooks, Trainer with callbacks."""
import os
import tempfile
from typing import Protocol

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu()
        return (x + self.norm2(self.conv2(y))).relu()


class Classifier(nn.Module):
    def __init__(self, c=8, depth=3, classes=3):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, padding=1)
        self.blocks = nn.ModuleList([Residual(c) for _ in range(depth)])
        self.fc = nn.Linear(c, classes)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = b(x)
        return self.fc(x.mean((2, 3)))


class Callback(Protocol):
    def on_epoch_end(self, trainer): ...


class DeadUnits:
    """Share of units that are never active, by forward hooks."""

    def __init__(self, model, warn_above=0.9):
        self.values = {}
        self.warn_above = warn_above
        for name, m in model.named_modules():
            if isinstance(m, Residual):
                m.register_forward_hook(self.make_hook(name))

    def make_hook(self, name):
        def hook(module, args, output):
            dead = (output.amax((0, 2, 3)) <= 0).float().mean().item()
            self.values[name] = dead
            if dead > self.warn_above:
                print(f"warning: {name} has {dead:.0%} dead units")

        return hook

    def on_epoch_end(self, trainer):
        print("dead:", {k: round(v, 2) for k, v in self.values.items()})


class Checkpoint:
    def __init__(self, folder):
        self.folder = folder

    def on_epoch_end(self, trainer):
        torch.save(trainer.raw.state_dict(), os.path.join(self.folder, f"{trainer.epoch}.pt"))


class Trainer:
    def __init__(self, model, callbacks, lr=0.02):
        self.raw, self.callbacks = model, callbacks
        self.model = torch.compile(model, backend="aot_eager")
        self.opt = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
        self.epoch = 0

    def fit(self, epochs, steps, g):
        for self.epoch in range(epochs):
            self.raw.train()
            for _ in range(steps):
                x, y = images(8, g)
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(f"epoch {self.epoch} loss {loss.item():.3f} acc {self.test(g):.2f}")
            for c in self.callbacks:
                c.on_epoch_end(self)

    @torch.no_grad()
    def test(self, g):
        self.raw.eval()
        x, y = images(8, g)
        return (self.model(x).argmax(1) == y).float().mean().item()


def images(n, g):
    y = torch.randint(3, (n,), generator=g)
    x = 0.3 * torch.randn(n, 3, 10, 10, generator=g)
    x[torch.arange(n), y] += 1
    return x, y


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    model = Classifier()
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model, [DeadUnits(model), Checkpoint(folder)]).fit(3, 6, g)


if __name__ == "__main__":
    main()
