"""Serving one backbone with ten LoRA adapters; the request names the adapter."""
import itertools
import random
from collections import Counter

import torch
from torch import nn

NAMES = ["en", "de", "fr", "es", "it", "pl", "cs", "nl", "pt", "sv"]


class LoraLinear(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.rank = rank
        self.a, self.b = nn.ParameterDict(), nn.ParameterDict()
        self.active = None

    def add(self, name):
        self.a[name] = nn.Parameter(torch.randn(self.rank, self.base.in_features) * 0.02)
        self.b[name] = nn.Parameter(torch.randn(self.base.out_features, self.rank) * 0.02)

    def forward(self, x):
        y = self.base(x)
        if self.active is not None:
            y = y + (x @ self.a[self.active].T) @ self.b[self.active].T
        return y


class Tower(nn.Module):
    def __init__(self, d=32, depth=3, classes=4):
        super().__init__()
        self.layers = nn.ModuleList(LoraLinear(nn.Linear(d, d)) for _ in range(depth))
        self.out = nn.Linear(d, classes)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)

    def use(self, name):
        for layer in self.layers:
            layer.active = name


class Server:
    def __init__(self, model):
        self.model = model
        self.fast = torch.compile(model, backend="eager")
        self.served = Counter()

    @torch.inference_mode()
    def handle(self, adapter, x):
        self.model.use(adapter)
        self.served[adapter] += 1
        return self.fast(x).argmax(-1)


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    model = Tower().eval()
    for name, layer in itertools.product(NAMES, model.layers):
        layer.add(name)
    server = Server(model)
    for _ in range(40):
        server.handle(rng.choice(NAMES), torch.randn(8, 32))
    print(dict(server.served))


if __name__ == "__main__":
    main()
